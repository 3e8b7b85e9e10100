import { hrefTo } from '#api/console/app/address.ts'
import { fetchStream } from '#api/console/app/api-call.ts'
import { formatBytes, formatCompact, formatCount } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import { button } from '#api/console/app/parts/buttons.ts'
import { figure, page, section } from '#api/console/app/parts/frame.ts'
import { queryView } from '#api/console/app/parts/notes.ts'
import { useQuery } from '#api/console/app/queries.ts'
import {
  parseSamples,
  sumSamples,
  type Sample,
} from '#api/console/app/service/prometheus-samples.ts'

/** The status of the service, and links to more. */
export function Service(): View {
  const metrics = useQuery(
    async () => parseSamples(await (await fetchStream('/metrics', {})).text()),
    [],
  )
  return page({
    title: 'Service',
    description: 'What this process counts.',
    actions: button('Refresh', metrics.refetch),
    children: html`${queryView(metrics, 'the metrics', statsView)}
    ${section(
      'Further',
      html`<div class="panel stack">
        <p><a href="/metrics">Metrics</a>: everything that is counted, as Prometheus reads it</p>
        <p><a href="/docs">API reference</a>: every endpoint, to read and to try</p>
        <p class="quiet">
          The metrics ask for the admin credential again, as the password of any user name.
        </p>
      </div>`,
    )}`,
  })
}

function statsView(samples: Sample[]): View {
  const sum = (name: string): number => sumSamples(samples, name)
  const requests = sum('vault_request_seconds_count')
  const failed = sumSamples(samples, 'vault_request_seconds_count', ({ status }) =>
    Boolean(status?.startsWith('5')),
  )
  const mean = (sum('vault_request_seconds_sum') / requests) * 1000
  const dead = sum('vault_queue_dead_jobs')
  return html`<div class="stack-wide">
    <dl class="figures">
      ${figure('Requests', formatCompact(requests), 'since this process began')}
      ${figure('Mean time', requests === 0 ? '–' : `${mean.toFixed(1)} ms`)}
      ${figure('Failed', formatCount(failed), 'answered 500 or above')}
      ${figure('Indexes', formatCount(sum('vault_indexes')), formatBytes(sum('vault_index_bytes')))}
      ${figure('Operations', formatCount(sum('vault_operations')), 'not finished')}
      ${figure(
        'Dead jobs',
        formatCount(dead),
        dead === 0
          ? 'nothing to do'
          : html`<a href=${hrefTo('service', 'queues')}>see the queues</a>`,
      )}
    </dl>
  </div>`
}
