import { useAsked } from '#api/console/app/asked.ts'
import { stream } from '#api/console/app/call.ts'
import { html, type View } from '#api/console/app/html.ts'
import { figure, page, section } from '#api/console/app/parts/frame.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { emptyNote, shown } from '#api/console/app/parts/states.ts'
import { queuesOf, samplesOf, sumOf, type Sample } from '#api/console/app/service/samples.ts'
import { brief, bytesOf, count } from '#api/console/app/words.ts'

/** How the service does: what waits in its queues, and where to look further. */
export function Service(): View {
  const metrics = useAsked(async () => samplesOf(await (await stream('/metrics', {})).text()), [])
  return page({
    title: 'Service',
    words: 'What this process counts, and what waits in the queues of all.',
    actions: html`<button type="button" class="button" onClick=${metrics.again}>Refresh</button>`,
    children: html`<div class="stack-wide">
      ${shown(metrics, 'the metrics', figuresView)}
      ${section(
        'Further',
        html`<div class="panel stack">
          <p><a href="/admin/queues">Queue dashboard</a>: jobs, dead letters, schedules</p>
          <p><a href="/metrics">Metrics</a>: everything that is counted, as Prometheus reads it</p>
          <p><a href="/docs">API reference</a>: every endpoint, to read and to try</p>
          <p class="quiet">
            The first two ask for the admin credential again, as the password of any user name.
          </p>
        </div>`,
      )}
    </div>`,
  })
}

function figuresView(samples: Sample[]): View {
  const requests = sumOf(samples, 'vault_request_seconds_count')
  const failed = sumOf(samples, 'vault_request_seconds_count', ({ status }) =>
    Boolean(status?.startsWith('5')),
  )
  const seconds = sumOf(samples, 'vault_request_seconds_sum')
  const queues = queuesOf(samples)
  const dead = queues.reduce((sum, queue) => sum + queue.dead, 0)
  return html`<div class="stack-wide">
    <dl class="figures">
      ${figure('Requests', brief(requests), 'since this process began')}
      ${figure('Mean time', requests === 0 ? '–' : `${((seconds / requests) * 1000).toFixed(1)} ms`)}
      ${figure('Failed', count(failed), 'answered 500 or above')}
      ${figure('Images', count(sumOf(samples, 'vault_images')), bytesOf(sumOf(samples, 'vault_image_bytes')))}
      ${figure('Operations', count(sumOf(samples, 'vault_operations')), 'not over')}
      ${figure('Dead jobs', count(dead), dead === 0 ? 'nothing to do' : 'see the dashboard')}
    </dl>
    ${section(
      'Queues',
      queues.length === 0
        ? emptyNote('Queues are not seen now', 'The database is out of reach.')
        : html`<ul class="plain rows">
            ${queues.map(
              ({ name, waiting, active, dead, oldestSeconds }) =>
                html`<li key=${name} class="row">
                  <div class="row-main">
                    <p class="row-title">
                      ${name} ${dead > 0 && chip(`${count(dead)} dead`, 'bad')}
                    </p>
                  </div>
                  <p class="quiet">
                    ${count(waiting)} waiting, ${count(active)} active
                    ${oldestSeconds > 1 && `, oldest ${count(Math.round(oldestSeconds))} s`}
                  </p>
                </li>`,
            )}
          </ul>`,
    )}
  </div>`
}
