import { useState } from 'preact/hooks'
import type { EndpointResponse } from '#api/client/client.ts'
import { useQuery } from '#api/console/app/use-query.ts'
import { call } from '#api/console/app/api-call.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { Chart } from '#api/console/app/parts/chart.ts'
import { daysField, fillMissingDays } from '#api/console/app/parts/days.ts'
import { figure, page, section } from '#api/console/app/parts/frame.ts'
import { emptyNote, queryView } from '#api/console/app/parts/query-view.ts'
import { table } from '#api/console/app/parts/table.ts'
import { formatCompact, formatCount, formatUtcDay } from '#api/console/app/format.ts'

type Usage = EndpointResponse<'GET /v1/operator/usage'>
type UsageMetric = 'requests' | 'memory_tokens' | 'input_tokens' | 'output_tokens'

/** The usage of all tenants by day. */
export function ServiceUsage(): View {
  const [days, setDays] = useState('30')
  const usage = useQuery(
    signal => call('GET /v1/operator/usage', { query: { days: Number(days) } }, signal),
    [days],
  )
  return page({
    title: 'Usage of the service',
    description: 'Of all tenants together. Days are UTC.',
    children: html`<div class="stack-wide">
      <div class="panel filters">${daysField(days, setDays)}</div>
      ${queryView(usage, 'usage', usageView)}
    </div>`,
  })
}

function usageView(usage: Usage): View {
  const sumOf = (name: UsageMetric): number => usage.by_day.reduce((sum, day) => sum + day[name], 0)
  const days = fillMissingDays(usage, usage.by_day, ['requests', 'accounts', 'memory_tokens'])
  const chart = (metric: string, name: string): View =>
    section(`${name} a day`, renderComponent(Chart, { days, metric, name }))
  return html`<div class="stack-wide">
    <dl class="figures">
      ${figure('Requests', formatCount(sumOf('requests')))}
      ${figure('Memory tokens', formatCompact(sumOf('memory_tokens')), 'stored and retrieved')}
      ${figure('Model input', formatCompact(sumOf('input_tokens')), 'tokens')}
      ${figure('Model output', formatCompact(sumOf('output_tokens')), 'tokens')}
    </dl>
    ${
      usage.by_day.length === 0
        ? emptyNote('No requests in this time', 'Requests of all tenants appear here.')
        : [
            chart('requests', 'Requests'),
            chart('accounts', 'Active tenants'),
            chart('memory_tokens', 'Memory tokens'),
            section(
              'The same in numbers',
              html`<details>
                <summary>Days with use</summary>
                ${table(
                  ['Day', 'Tenants', 'Requests', 'Memory tokens'],
                  usage.by_day.map(day => [
                    formatUtcDay(day.day),
                    formatCount(day.accounts),
                    formatCount(day.requests),
                    formatCount(day.memory_tokens),
                  ]),
                )}
              </details>`,
            ),
          ]
    }
  </div>`
}
