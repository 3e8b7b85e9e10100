import { hrefTo, hrefWith } from '#api/console/app/address.ts'
import { fetchStream } from '#api/console/app/api-call.ts'
import {
  formatBytes,
  formatCompact,
  formatCount,
  formatPercent,
  formatSeconds,
  pluralize,
} from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import { button } from '#api/console/app/parts/buttons.ts'
import { table } from '#api/console/app/parts/chart.ts'
import { failedView, figure, page, section } from '#api/console/app/parts/frame.ts'
import { faultNote, queryView } from '#api/console/app/parts/notes.ts'
import { useCall, useQuery } from '#api/console/app/queries.ts'
import { healthWords, partCells, useHealth, type Health } from '#api/console/app/service/health.ts'
import {
  parseSamples,
  sumSamples,
  type Sample,
} from '#api/console/app/service/prometheus-samples.ts'
import { countOf, failedOperations } from '#api/console/app/vault/operations.ts'
import { formatMs } from '#api/console/app/vault/trace-words.ts'

/** Whether the service is well: its parts, its answers, its work. */
export function Service(): View {
  const health = useHealth()
  const metrics = useQuery(
    async () => parseSamples(await (await fetchStream('/metrics', {})).text()),
    [],
  )
  const failed = useCall('GET /v1/operator/operations', failedOperations)
  const refresh = (): void => {
    failed.refetch()
    health.refetch()
    metrics.refetch()
  }
  return page({
    title: 'Health',
    description: 'The process that answers this page, and what it depends on.',
    actions: button('Refresh', refresh),
    children: html`${queryView(health, 'the parts', health => partsView(health, countOf(failed.answer)))}
    ${queryView(metrics, 'the metrics', samples => statsView(samples, countOf(failed.answer)))}
    ${section(
      'Further',
      html`<div class="panel stack">
        <p>
          <a href="/metrics">Metrics</a>: everything that is counted, as Prometheus reads it; the
          admin credential is asked for again, as the password of any user name
        </p>
        <p><a href="/docs">API reference</a>: every endpoint, to read and to try</p>
      </div>`,
    )}`,
  })
}

function partsView(health: Health, failed: string): View {
  const words = healthWords(health)
  const { version, uptime_seconds: uptime = 0, limitations = [] } = health
  return html`<div class="stack">
    ${
      words === ''
        ? html`<p class="panel all-well">
            <b>All ${health.parts.length} parts answer.</b>
            ${version !== undefined && ` Version ${version}, running for ${formatSeconds(uptime)}. `}
            ${Number.parseInt(failed) > 0 && html`<a href=${hrefWith({ state: 'failed' }, 'service', 'operations')}>${failed === '1' ? '1 operation' : `${failed} operations`} failed</a>.`}
          </p>`
        : faultNote({ message: `${words}.`, hint: health.error })
    }
    ${table(['Part', 'State', 'Since', 'Answers in', 'Last fault'], health.parts.map(partCells))}
    ${limitations.map(one => html`<p key=${one} class="quiet">${one}</p>`)}
  </div>`
}

function statsView(samples: Sample[], count: string): View {
  const sum = (name: string, ofLabels?: Record<string, string>): number =>
    sumSamples(samples, name, labels =>
      Object.entries(ofLabels ?? {}).every(([label, value]) => labels[label] === value),
    )
  const requests = sum('vault_request_seconds_count')
  const failed = sumSamples(samples, 'vault_request_seconds_count', ({ status }) =>
    Boolean(status?.startsWith('5')),
  )
  const recalls = sum('vault_recalls_total')
  const degraded = sum('vault_recalls_total', { status: 'degraded' })
  const dead = sum('vault_queue_dead_jobs')
  const stopped = sum('vault_organizations_faulty')
  const p95 = sum('vault_recent_request_p95_seconds')
  const unfinished = `${formatCount(sum('vault_operations'))} not finished`
  return html`<dl class="figures">
    ${figure('95 % within', p95 === 0 ? '–' : formatMs(p95 * 1000), p95 === 0 ? 'no calls in 15 minutes' : 'calls of the last 15 minutes')}
    ${figure(
      'Without memory',
      recalls === 0 ? '–' : formatPercent(degraded / recalls),
      `${pluralize(degraded, 'call')} of ${formatCompact(recalls)} went on without`,
    )}
    ${figure('Requests', formatCompact(requests), `since the start, ${formatCount(failed)} answered 500 or above`)}
    ${figure('Indexes in memory', formatCount(sum('vault_indexes')), formatBytes(sum('vault_index_bytes')))}
    ${figure(
      'Operations',
      failedView(`${count} failed`, count === '0'),
      html`<a href=${hrefTo('service', 'operations')}>${unfinished}</a>`,
    )}
    ${figure(
      'Dead jobs',
      failedView(formatCount(dead), dead === 0),
      dead === 0
        ? 'none was given up'
        : html`<a href=${hrefTo('service', 'queues')}>see the queues</a>`,
    )}
    ${figure(
      'Teams that stopped',
      failedView(formatCount(stopped), stopped === 0),
      stopped === 0 ? 'none' : html`<a href=${hrefTo('orgs')}>see the organizations</a>`,
    )}
  </dl>`
}
