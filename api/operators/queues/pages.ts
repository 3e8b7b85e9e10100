import { html, type Html } from '#api/edge/html.ts'
import { deadLetterQueueOf, jobNames } from '#shared/domain/jobs.ts'
import type { JobDetail, JobRow } from '#shared/storage/queue/job-admin.ts'
import type { QueueStats } from '#shared/storage/queue/queue-stats.ts'

export const basePath = '/admin/queues'
export const jobsPerPage = 50

export const pageStyle = `
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem;
  color-scheme: light dark; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: 0.3rem 0.6rem; border-bottom: 1px solid #8884; vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
td form, p form { display: inline; }
textarea { width: 100%; font: 14px/1.4 ui-monospace, monospace; }
code { overflow-wrap: anywhere; }
.notice { border-left: 4px solid #2a7; padding: 0.3rem 0.8rem; }
`

export function page(title: string, body: Html, notice = ''): string {
  const note = notice === '' ? '' : html`<p class="notice" role="status">${notice}</p>`
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${title} · Memory Vault</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href="${basePath}/style.css" />
      </head>
      <body>
        <nav><a href="${basePath}">Queues</a> · <a href="${basePath}/send">Send a job</a></nav>
        <h1>${title}</h1>
        ${note} ${body}
      </body>
    </html> `.text
}

const queueLink = (queue: string, text: string | number): Html =>
  html`<a href="${basePath}/${queue}">${text}</a>`
const numberCell = (value: string | number | Html | null): Html =>
  html`<td class="number">${value ?? '–'}</td>`
const ageOf = (seconds: number | null): string | null => (seconds === null ? null : `${seconds} s`)

const heldOf = ({ held, waitsFor }: QueueStats): string | number =>
  waitsFor === null ? held : `${held}, for ${waitsFor}`

export const queuesBody = (queues: readonly QueueStats[]): Html =>
  html`<table>
    <thead>
      <tr>
        <th>Queue</th>
        ${['Waiting', 'Held', 'Retrying', 'Running', 'Dead', 'Oldest due', 'Longest run'].map(
          head => html`<th class="number">${head}</th>`,
        )}
      </tr>
    </thead>
    <tbody>
      ${queues.map(
        queue =>
          html`<tr>
            <td>${queueLink(queue.name, queue.name)}</td>
            ${numberCell(queue.waiting - queue.held)}${numberCell(heldOf(queue))}
            ${numberCell(queue.retrying)}${numberCell(queue.active)}
            ${numberCell(queueLink(deadLetterQueueOf(queue.name), queue.dead))}
            ${numberCell(ageOf(queue.oldestSeconds))}${numberCell(ageOf(queue.longestSeconds))}
          </tr>`,
      )}
    </tbody>
  </table>`

const jobPath = ({ queue, id }: JobRow): string => `${basePath}/${queue}/jobs/${id}`
const timeOf = (date: Date | null): string => date?.toISOString() ?? '–'

export function jobsBody(queue: string, jobs: readonly JobRow[], pageNumber: number): Html {
  const next =
    jobs.length < jobsPerPage
      ? ''
      : html`<p><a href="${basePath}/${queue}?page=${pageNumber + 1}">Next page</a></p>`
  if (jobs.length === 0) return html`<p>No jobs.</p>`
  return html`<table>
      <thead>
        <tr>
          <th>Job</th>
          <th>State</th>
          <th class="number">Tries</th>
          <th>Created</th>
          <th>Error</th>
        </tr>
      </thead>
      <tbody>
        ${jobs.map(
          job =>
            html`<tr>
              <td>
                <a href="${jobPath(job)}"><code>${job.id}</code></a>
              </td>
              <td>${job.state}</td>
              ${numberCell(job.tries)}
              <td>${timeOf(job.createdAt)}</td>
              <td>${job.error.slice(0, 200)}</td>
            </tr>`,
        )}
      </tbody>
    </table>
    ${next}`
}

const actionForm = (job: JobRow, action: 'retry' | 'cancel' | 'delete', text: string): Html =>
  html`<form method="post" action="${jobPath(job)}/${action}"><button>${text}</button></form> `

export function jobBody(job: JobDetail): Html {
  const rows: [string, string | number][] = [
    ['Queue', job.queue],
    ['State', job.state],
    ['Tries', job.tries],
    ['Priority', job.priority],
    ['Operation', job.operation ?? '–'],
    ['Created', timeOf(job.createdAt)],
    ['Not before', timeOf(job.startsAfter)],
    ['Started', timeOf(job.startedAt)],
    ['Completed', timeOf(job.completedAt)],
    ['Last error', job.error || '–'],
  ]
  return html`<table>
      <tbody>
        ${rows.map(
          ([name, value]) =>
            html`<tr>
              <th>${name}</th>
              <td>${value}</td>
            </tr>`,
        )}
      </tbody>
    </table>
    <p>
      ${actionForm(job, 'retry', 'Run now')}${actionForm(job, 'cancel', 'Cancel with its operation')}
      ${actionForm(job, 'delete', 'Delete')}
    </p>
    <h2>Payload</h2>
    <p>Words of users are not shown.</p>
    <pre><code>${JSON.stringify(withoutWords(job.data), null, 2)}</code></pre>`
}

const idOrDigest = /^(?:[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|[\da-f]{32,128})$/i

/** Fields whose text is the service's own. */
const serviceFields = new Set(['model', 'space', 'role'])

/** Ids, digests, numbers and names of models; any other text by its length, metadata by its count. */
function withoutWords(value: unknown, name = ''): unknown {
  if (typeof value === 'string')
    return serviceFields.has(name) || idOrDigest.test(value)
      ? value
      : `(${value.length} characters)`
  if (Array.isArray(value)) return value.map(item => withoutWords(item, name))
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value)
  if (name === 'metadata') return `(${fields.length} fields)`
  return Object.fromEntries(fields.map(([key, field]) => [key, withoutWords(field, key)]))
}

export const sendBody = html`<form method="post" action="${basePath}/send">
  <p>
    <label
      >Queue
      <select name="queue">
        ${jobNames.map(name => html`<option>${name}</option>`)}
      </select></label
    >
  </p>
  <p>
    <label>Payload, a JSON object<br /><textarea name="data" rows="8">{}</textarea></label>
  </p>
  <p><button>Send</button></p>
</form>`
