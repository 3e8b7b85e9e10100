import { useState } from 'preact/hooks'
import { dayMs, formatCompact, formatCount, isoDay } from '#api/console/app/format.ts'
import { currentCredential } from '#api/console/app/credential.ts'
import { html, renderComponent, type Children, type View } from '#api/console/app/html.ts'
import { daysField, fillMissingDays, table } from '#api/console/app/parts/chart.ts'
import { filters } from '#api/console/app/parts/fields.ts'
import { figure, page, section } from '#api/console/app/parts/frame.ts'
import { emptyNote, queryView } from '#api/console/app/parts/notes.ts'
import { dayBars } from '#api/console/app/parts/stacked-bars.ts'
import { useCall } from '#api/console/app/queries.ts'
import { AccountUsage } from '#api/console/app/vault/account-usage.ts'

/** The usage of the account, or for a key that may not see it, of that key. */
export const Usage = (): View =>
  renderComponent(currentCredential()!.owner ? AccountUsage : KeyUsage, {})

/** The usage of this key by day and by model. */
function KeyUsage(): View {
  const [days, setDays] = useState('30')
  const start = isoDay(Date.now() - (Number(days) - 1) * dayMs)
  const usage = useCall('GET /v1/account/usage', { query: { start, by_day: true } })
  return page({
    title: 'Usage',
    description: 'Of this key. Days are UTC.',
    children: html`${filters(daysField(days, setDays))}
    ${queryView(usage, 'usage', ({ by_model, by_day = [], period, ...sums }) => {
      const models = Object.entries(by_model)
      return usageView({
        sums,
        period,
        days: by_day,
        metrics: [
          ['requests', 'Requests'],
          ['memory_tokens', 'Memory tokens'],
        ],
        unused: 'Requests with this key appear here.',
        further:
          models.length > 0 &&
          section(
            'Models',
            table(
              ['Model', 'Requests', 'Input tokens'],
              models.map(([model, { requests, input_tokens }]) => [
                model,
                formatCount(requests),
                formatCount(input_tokens),
              ]),
            ),
          ),
      })
    })}`,
  })
}

type SumName = `total_${'requests' | 'memory_tokens' | 'input_tokens' | 'output_tokens'}`

type UsageProps<Metric extends string> = {
  sums: Record<SumName, number>
  period: { start: string; end: string }
  /** Days without usage are left out. */
  days: readonly ({ day: string } & Record<Metric, number>)[]
  /** The numbers of a day that are drawn and listed, with their names. */
  metrics: readonly (readonly [Metric, name: string])[]
  /** What an empty period says. */
  unused: string
  further?: Children
}

/** Usage as sums, charts and numbers by day. */
export function usageView<Metric extends string>(usage: UsageProps<Metric>): View {
  const { sums, days, metrics } = usage
  const names = metrics.map(([metric]) => metric)
  const allDays = fillMissingDays(usage.period, days, names)
  return html`<div class="stack-wide">
    <dl class="figures">
      ${figure('Requests', formatCount(sums.total_requests))}
      ${figure('Memory tokens', formatCompact(sums.total_memory_tokens), 'stored and retrieved')}
      ${figure('Model input', formatCompact(sums.total_input_tokens), 'tokens')}
      ${figure('Model output', formatCompact(sums.total_output_tokens), 'tokens')}
    </dl>
    ${
      sums.total_requests === 0
        ? emptyNote('No requests in this time', usage.unused)
        : [
            ...metrics.map(([metric, name]) =>
              section(`${name} a day`, dayBars(allDays, metric, name)),
            ),
            usage.further,
          ]
    }
  </div>`
}
