import { useQuery } from '#api/console/app/use-query.ts'
import { fetchStream } from '#api/console/app/api-call.ts'
import { html, type View } from '#api/console/app/html.ts'
import { figure, page, section } from '#api/console/app/parts/frame.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { emptyNote, queryView } from '#api/console/app/parts/query-view.ts'
import {
  queueStats,
  parseSamples,
  sumSamples,
  type Sample,
} from '#api/console/app/service/prometheus-samples.ts'
import { formatCompact, formatBytes, formatCount } from '#api/console/app/format.ts'

/** The status of the service: its queues, and links to more. */
export function Service(): View {
  const metrics = useQuery(
    async () => parseSamples(await (await fetchStream('/metrics', {})).text()),
    [],
  )
  return page({
    title: 'Service',
    description: 'What this process counts, and what waits in the queues of all.',
    actions: html`<button type="button" class="button" onClick=${metrics.refetch}>Refresh</button>`,
    children: html`<div class="stack-wide">
      ${queryView(metrics, 'the metrics', statsView)}
      ${section(
        'Further',
        html`<div class="panel stack">
          <p><a href="/admin/queues">Queues</a>: jobs and dead letters</p>
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

function statsView(samples: Sample[]): View {
  const requests = sumSamples(samples, 'vault_request_seconds_count')
  const failed = sumSamples(samples, 'vault_request_seconds_count', ({ status }) =>
    Boolean(status?.startsWith('5')),
  )
  const seconds = sumSamples(samples, 'vault_request_seconds_sum')
  const queues = queueStats(samples)
  const dead = queues.reduce((sum, queue) => sum + queue.dead, 0)
  return html`<div class="stack-wide">
    <dl class="figures">
      ${figure('Requests', formatCompact(requests), 'since this process began')}
      ${figure('Mean time', requests === 0 ? '–' : `${((seconds / requests) * 1000).toFixed(1)} ms`)}
      ${figure('Failed', formatCount(failed), 'answered 500 or above')}
      ${figure('Indexes', formatCount(sumSamples(samples, 'vault_indexes')), formatBytes(sumSamples(samples, 'vault_index_bytes')))}
      ${figure('Operations', formatCount(sumSamples(samples, 'vault_operations')), 'not over')}
      ${figure('Dead jobs', formatCount(dead), dead === 0 ? 'nothing to do' : 'see the queues')}
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
                      ${name} ${dead > 0 && chip(`${formatCount(dead)} dead`, 'bad')}
                    </p>
                  </div>
                  <p class="quiet">
                    ${formatCount(waiting)} waiting, ${formatCount(active)} active
                    ${oldestSeconds > 1 && `, oldest ${formatCount(Math.round(oldestSeconds))} s`}
                  </p>
                </li>`,
            )}
          </ul>`,
    )}
  </div>`
}
