import { hrefTo } from '#api/console/app/address.ts'
import { formatCount, formatSeconds, pluralize } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { button, buttonLink } from '#api/console/app/parts/buttons.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import { emptyNote, queryView, row, rows } from '#api/console/app/parts/notes.ts'
import { useCall, useRefresh } from '#api/console/app/queries.ts'
import { QueueJobs } from '#api/console/app/service/queue-jobs.ts'
import type { ServiceQueue } from '#api/contract/generated/types.ts'

/** @param id of the queue whose jobs are shown; undefined for all queues */
export const Queues = ({ id }: { id: string | undefined }): View =>
  id === undefined
    ? renderComponent(QueueList, {})
    : renderComponent(QueueJobs, { queue: id, key: id })

const refreshMs = 5_000

function QueueList(): View {
  const queues = useCall('GET /v1/operator/queues', {})
  useRefresh(queues.refetch, refreshMs)
  return page({
    title: 'Queues',
    description: `What waits, runs and was given up, in all processes. Looked at every ${refreshMs / 1000} seconds.`,
    actions: button('Refresh', queues.refetch),
    children: queryView(queues, 'the queues', ({ items }) => queuesView(items)),
  })
}

const depthOf = ({ waiting, retrying, running }: ServiceQueue): number =>
  waiting + retrying + running

function queuesView(queues: readonly ServiceQueue[]): View {
  const busy = queues.filter(queue => depthOf(queue) + queue.dead > 0)
  const idle = queues.filter(queue => !busy.includes(queue))
  const deepest = Math.max(1, ...busy.map(depthOf))
  const oldest = Math.max(1, ...busy.map(queue => queue.oldest_seconds ?? 0))
  const ordered = busy.toSorted(
    (one, other) => other.dead - one.dead || depthOf(other) - depthOf(one),
  )
  return html`<div class="stack-wide">
    ${
      ordered.length === 0
        ? emptyNote('Nothing waits', 'No job waits, runs or is dead.')
        : rows(ordered.map(queue => [queue.name, queueRow(queue, deepest, oldest)]))
    }
    ${
      idle.length > 0 &&
      section(
        'Empty queues',
        html`<ul class="plain chips">
          ${idle.map(({ name }) => html`<li key=${name}><a href=${queueHref(name)}>${name}</a></li>`)}
        </ul>`,
      )
    }
  </div>`
}

const queueHref = (queue: string): string => hrefTo('service', 'queues', queue)

const queueRow = (queue: ServiceQueue, deepest: number, oldest: number): View => {
  const { name, dead, oldest_seconds: age } = queue
  const depth = depthOf(queue)
  return row(
    html`<p class="row-title">
        <a href=${queueHref(name)}>${name}</a>
        ${dead > 0 && chip(`${formatCount(dead)} dead`, 'bad')}
      </p>
      <p>${countsOf(queue)}</p>
      ${bar(`Jobs in ${name}`, depth, deepest, pluralize(depth, 'job'))}
      ${
        age !== null &&
        bar(
          `Age of the oldest job that is due in ${name}`,
          age,
          oldest,
          `oldest due for ${formatSeconds(age)}`,
        )
      }`,
    dead > 0 && buttonLink('Dead jobs', queueHref(`${name}.dead`), { about: name }),
  )
}

/** A bar that can be compared with those of the other queues. */
const bar = (label: string, value: number, max: number, words: string): View =>
  html`<p class="queue-bar">
    <meter aria-label=${label} min="0" max=${max} value=${value}></meter>
    <span class="quiet">${words}</span>
  </p>`

/** `12 waiting, 3 of them held for mongodb, 1 running for 4 s`. */
function countsOf(queue: ServiceQueue): string {
  const { waiting, held, waits_for, retrying, running, longest_seconds: longest } = queue
  const counts = [`${formatCount(waiting)} waiting`]
  if (held > 0)
    counts.push(`${formatCount(held)} of them held${waits_for === null ? '' : ` for ${waits_for}`}`)
  if (retrying > 0) counts.push(`${formatCount(retrying)} to be tried again`)
  if (running > 0)
    counts.push(
      `${formatCount(running)} running${longest === null ? '' : `, the longest for ${formatSeconds(longest)}`}`,
    )
  return counts.join(', ')
}
