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

type Usage = EndpointResponse<'GET /v1/account/usage'>

const dayMs = 24 * 3600 * 1000

/** The usage of this key by day and by model. */
export function Usage(): View {
  const [days, setDays] = useState('30')
  const usage = useQuery(
    signal => {
      const start = new Date(Date.now() - (Number(days) - 1) * dayMs).toISOString().slice(0, 10)
      return call('GET /v1/account/usage', { query: { start, by_day: true } }, signal)
    },
    [days],
  )
  return page({
    title: 'Usage',
    description: 'Of this key. Days are UTC.',
    children: html`<div class="stack-wide">
      <div class="panel filters">${daysField(days, setDays)}</div>
      ${queryView(usage, 'usage', usageView)}
    </div>`,
  })
}

function usageView(usage: Usage): View {
  const models = Object.entries(usage.by_model)
  const days = fillMissingDays(usage.period, usage.by_day ?? [], ['requests', 'memory_tokens'])
  return html`<div class="stack-wide">
    <dl class="figures">
      ${figure('Requests', formatCount(usage.total_requests))}
      ${figure('Memory tokens', formatCompact(usage.total_memory_tokens), 'stored and retrieved')}
      ${figure('Model input', formatCompact(usage.total_input_tokens), 'tokens')}
      ${figure('Model output', formatCompact(usage.total_output_tokens), 'tokens')}
    </dl>
    ${
      usage.total_requests === 0
        ? emptyNote('No requests in this time', 'Requests with this key appear here.')
        : [
            section(
              'Requests a day',
              renderComponent(Chart, { days, metric: 'requests', name: 'Requests' }),
            ),
            section(
              'Memory tokens a day',
              renderComponent(Chart, { days, metric: 'memory_tokens', name: 'Memory tokens' }),
            ),
            models.length > 0 &&
              section(
                'Models',
                table(['Model', 'Requests', 'Input tokens'], models.map(rowOfModel)),
              ),
            section(
              'The same in numbers',
              html`<details>
                <summary>Days with use</summary>
                ${table(
                  ['Day', 'Requests', 'Memory tokens'],
                  (usage.by_day ?? []).map(({ day, requests, memory_tokens }) => [
                    formatUtcDay(day),
                    formatCount(requests),
                    formatCount(memory_tokens),
                  ]),
                )}
              </details>`,
            ),
          ]
    }
  </div>`
}

const rowOfModel = ([model, used]: [string, { requests: number; input_tokens: number }]) => [
  model,
  formatCount(used.requests),
  formatCount(used.input_tokens),
]
