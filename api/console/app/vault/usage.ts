import { useState } from 'preact/hooks'
import type { AnswerOf } from '#api/client/client.ts'
import { useAsked } from '#api/console/app/asked.ts'
import { call } from '#api/console/app/call.ts'
import { html, part, type View } from '#api/console/app/html.ts'
import { choiceField } from '#api/console/app/parts/fields.ts'
import { figure, page, section } from '#api/console/app/parts/frame.ts'
import { emptyNote, shown } from '#api/console/app/parts/states.ts'
import { Chart, type Day } from '#api/console/app/vault/chart.ts'
import { brief, count, shortDayOf } from '#api/console/app/words.ts'

type Usage = AnswerOf<'GET /v1/account/usage'>

const dayMs = 24 * 3600 * 1000

/** What this key has used, day by day and model by model. */
export function Usage(): View {
  const [days, setDays] = useState('30')
  const usage = useAsked(
    signal => {
      const start = new Date(Date.now() - (Number(days) - 1) * dayMs).toISOString().slice(0, 10)
      return call('GET /v1/account/usage', { query: { start, by_day: true } }, signal)
    },
    [days],
  )
  return page({
    title: 'Usage',
    words: 'Of this key. Days are UTC.',
    children: html`<div class="stack-wide">
      <div class="panel filters">
        ${choiceField({
          label: 'Time',
          value: days,
          onValue: setDays,
          choices: [
            ['7', 'the last 7 days'],
            ['30', 'the last 30 days'],
            ['90', 'the last 90 days'],
            ['365', 'the last year'],
          ],
        })}
      </div>
      ${shown(usage, 'usage', usageView)}
    </div>`,
  })
}

function usageView(usage: Usage): View {
  const models = Object.entries(usage.by_model)
  const days = everyDay(usage)
  return html`<div class="stack-wide">
    <dl class="figures">
      ${figure('Requests', count(usage.total_requests))}
      ${figure('Memory tokens', brief(usage.total_memory_tokens), 'stored and retrieved')}
      ${figure('Model input', brief(usage.total_input_tokens), 'tokens')}
      ${figure('Model output', brief(usage.total_output_tokens), 'tokens')}
    </dl>
    ${
      usage.total_requests === 0
        ? emptyNote('Nothing was used in this time', 'Requests with this key appear here.')
        : [
            section('Requests a day', part(Chart, { days, of: 'requests', name: 'Requests' })),
            section(
              'Memory tokens a day',
              part(Chart, { days, of: 'memory_tokens', name: 'Memory tokens' }),
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
                    shortDayOf(day),
                    count(requests),
                    count(memory_tokens),
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
  count(used.requests),
  count(used.input_tokens),
]

const table = (head: string[], rows: string[][]): View =>
  html`<div class="table" tabindex="0">
    <table>
      <thead>
        <tr>
          ${head.map(name => html`<th key=${name} scope="col">${name}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          cells =>
            html`<tr key=${cells[0]}>
              ${cells.map((cell, index) => html`<td key=${index}>${cell}</td>`)}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`

/** The service tells of days with use; a chart needs the others too. */
function everyDay({ period, by_day = [] }: Usage): Day[] {
  const known = new Map(by_day.map(day => [day.day, day]))
  const days: Day[] = []
  const begin = Math.floor(Date.parse(period.start) / dayMs) * dayMs
  for (let at = begin; at <= Date.parse(period.end); at += dayMs) {
    const { requests = 0, memory_tokens = 0 } =
      known.get(new Date(at).toISOString().slice(0, 10)) ?? {}
    days.push({ at, requests, memory_tokens })
  }
  return days
}
