import { useState } from 'preact/hooks'
import type { AnswerOf } from '#api/client/client.ts'
import { useAsked } from '#api/console/app/asked.ts'
import { call } from '#api/console/app/call.ts'
import { html, part, type View } from '#api/console/app/html.ts'
import { Chart } from '#api/console/app/parts/chart.ts'
import { daysField, everyDay } from '#api/console/app/parts/days.ts'
import { figure, page, section } from '#api/console/app/parts/frame.ts'
import { emptyNote, shown } from '#api/console/app/parts/states.ts'
import { table } from '#api/console/app/parts/table.ts'
import { brief, count, shortDayOf } from '#api/console/app/words.ts'

type Usage = AnswerOf<'GET /v1/operator/usage'>
type Sum = 'requests' | 'memory_tokens' | 'input_tokens' | 'output_tokens'

/** What all tenants together use, day by day. */
export function ServiceUsage(): View {
  const [days, setDays] = useState('30')
  const usage = useAsked(
    signal => call('GET /v1/operator/usage', { query: { days: Number(days) } }, signal),
    [days],
  )
  return page({
    title: 'Usage of the service',
    words: 'Of all tenants together. Days are UTC.',
    children: html`<div class="stack-wide">
      <div class="panel filters">${daysField(days, setDays)}</div>
      ${shown(usage, 'usage', usageView)}
    </div>`,
  })
}

function usageView(usage: Usage): View {
  const sumOf = (name: Sum): number => usage.by_day.reduce((sum, day) => sum + day[name], 0)
  const days = everyDay(usage, usage.by_day, ['requests', 'accounts', 'memory_tokens'])
  const chart = (of: string, name: string): View =>
    section(`${name} a day`, part(Chart, { days, of, name }))
  return html`<div class="stack-wide">
    <dl class="figures">
      ${figure('Requests', count(sumOf('requests')))}
      ${figure('Memory tokens', brief(sumOf('memory_tokens')), 'stored and retrieved')}
      ${figure('Model input', brief(sumOf('input_tokens')), 'tokens')}
      ${figure('Model output', brief(sumOf('output_tokens')), 'tokens')}
    </dl>
    ${
      usage.by_day.length === 0
        ? emptyNote('Nothing was used in this time', 'Requests of all tenants appear here.')
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
                    shortDayOf(day.day),
                    count(day.accounts),
                    count(day.requests),
                    count(day.memory_tokens),
                  ]),
                )}
              </details>`,
            ),
          ]
    }
  </div>`
}
