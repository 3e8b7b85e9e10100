import { downloadButton } from '#api/console/app/parts/buttons.ts'
import { hrefTo } from '#api/console/app/address.ts'
import {
  formatCompact,
  formatCost,
  formatCount,
  formatPercent,
  formatUtcDay,
} from '#api/console/app/format.ts'
import { html, renderComponent, type Children, type View } from '#api/console/app/html.ts'
import { chart, daysField, fillMissingDays, table } from '#api/console/app/parts/chart.ts'
import { unpricedNote } from '#api/console/app/parts/cost.ts'
import { filters, selectField, useFilters } from '#api/console/app/parts/fields.ts'
import { figure, page, section } from '#api/console/app/parts/frame.ts'
import { emptyNote, listView, queryView } from '#api/console/app/parts/notes.ts'
import { useCall, usePages } from '#api/console/app/queries.ts'
import { saveFile } from '#api/console/app/vault/export.ts'
import { usedOf } from '#api/console/app/vault/budget.ts'
import type {
  ModelPrice,
  UsageReportAnswer,
  UsageRow,
  UsageSums,
} from '#api/contract/generated/types.ts'

const dayMs = 24 * 3600 * 1000

const groups = { model: 'Model', user: 'User', key: 'Key', session: 'Session' } as const
type Group = keyof typeof groups

const metrics = {
  cost: 'Cost',
  requests: 'Requests',
  tokens: 'Tokens of models',
  memory_tokens: 'Memory tokens',
} as const
type Metric = keyof typeof metrics

const entriesOf = <Names extends Record<string, string>>(names: Names) =>
  Object.entries(names) as [keyof Names & string, string][]

/** The value of a field of the address, or the first there is. */
const known = <Names extends Record<string, string>>(names: Names, value: string) =>
  (value in names ? value : Object.keys(names)[0]!) as keyof Names & string

const defaults = { days: '30', by: 'model', of: '' }

/** The service tells the use of sessions for a month. */
const sessionDaysMax = 31
const daysMax = 365

/** The usage of the whole account, with what it costs: by day, and by model, user, key or session. */
export function AccountUsage(): View {
  const { fields, of } = useFilters(defaults)
  const by = known(groups, fields.by)
  const days = Math.min(Math.max(1, Math.trunc(Number(fields.days)) || 30), daysMax)
  const since = (days: number): string =>
    new Date(Date.now() - (days - 1) * dayMs).toISOString().slice(0, 10)
  const byDay = useCall('GET /v1/account/usage/report', {
    query: { group: 'day', start: since(days), limit: 1000 },
  })
  // Without a price there is no cost to draw.
  const drawn = byDay.answer?.total.cost_usd ? 'cost' : 'requests'
  const metric = known(metrics, fields.of || drawn)
  const listDays = by === 'session' ? Math.min(days, sessionDaysMax) : days
  return page({
    title: 'Usage',
    description: 'Of the whole account: its vaults, its users and its teams. Days are UTC.',
    children: html`${filters(
      daysField(of('days').value, of('days').onValue),
      selectField({ label: 'By', ...of('by'), choices: entriesOf(groups) }),
      selectField({ ...of('of'), label: 'Chart of', value: metric, choices: entriesOf(metrics) }),
    )}
    ${queryView(byDay, 'usage', report =>
      report.total.requests === 0
        ? emptyNote('No requests in this time', 'Requests of the account appear here.')
        : html`<div class="stack-wide">
            ${sumsView(report.total)} ${daysView(report, metric)}
            ${section(
              `By ${groups[by].toLowerCase()}`,
              html`${
                listDays < days &&
                html`<p class="quiet">${`Of the last ${sessionDaysMax} days.`}</p>`
              }
              ${renderComponent(UsageList, { key: by, by, start: since(listDays) })}`,
            )}
            ${report.prices.length > 0 && pricesView(report.prices)}
          </div>`,
    )}`,
  })
}

const sumsView = (total: UsageSums): View =>
  html`<div class="stack">
    <dl class="figures">
      ${figure('Cost', formatCost(total.cost_usd), 'by list prices')}
      ${figure('Requests', formatCount(total.requests))}
      ${figure(
        'Model input',
        formatCompact(total.input_tokens),
        total.input_tokens === 0
          ? 'tokens'
          : `tokens, ${formatPercent(total.cached_tokens / total.input_tokens)} from a cache`,
      )}
      ${figure('Model output', formatCompact(total.output_tokens), 'tokens')}
      ${figure('Memory tokens', formatCompact(total.memory_tokens), 'stored and retrieved')}
    </dl>
    ${unpricedNote(total.unpriced_tokens)}
  </div>`

type DayValues = Record<Metric, number> & { day: string }

const toDayValues = ({ day, ...sums }: UsageRow): DayValues => ({
  day: day!,
  cost: sums.cost_usd ?? 0,
  requests: sums.requests,
  tokens: sums.input_tokens + sums.output_tokens,
  memory_tokens: sums.memory_tokens,
})

function daysView({ items, period }: UsageReportAnswer, metric: Metric): View {
  const name = metrics[metric]
  const days = fillMissingDays(period, items.map(toDayValues), [metric])
  const isDrawn = days.some(day => (day[metric] ?? 0) > 0)
  return section(
    `${name} a day`,
    html`${
        isDrawn
          ? chart(days, metric, name, metric === 'cost' ? formatCost : undefined)
          : html`<p class="quiet">Nothing to draw in this time.</p>`
      }
      <details>
        <summary>Days with use</summary>
        ${table(
          ['Day', ...columns],
          items.map(row => [formatUtcDay(row.day!), ...cells(row)]),
        )}
      </details>`,
  )
}

const columns = ['Requests', 'Input', 'Cached', 'Output', 'Memory', 'Cost']

const cells = (row: UsageRow): string[] => [
  formatCount(row.requests),
  formatCount(row.input_tokens),
  formatCount(row.cached_tokens),
  formatCount(row.output_tokens),
  formatCount(row.memory_tokens),
  formatCost(row.cost_usd),
]

function UsageList({ by, start }: { by: Group; start: string }): View {
  const list = usePages('GET /v1/account/usage/report', { query: { group: by, start, limit: 50 } })
  return listView(list, {
    what: 'usage',
    empty: ['No requests in this time', 'Requests of the account appear here.'],
    show(items) {
      const hasBudgets = items.some(({ budget }) => budget)
      const ofAll = weightsOf(items)
      return html`${table(
          [groups[by], 'Share', ...columns, ...(hasBudgets ? ['Used of the budget'] : [])],
          items.map((row, index) => [
            nameOf[by](row),
            shareView(ofAll[index]!),
            ...cells(row),
            ...(hasBudgets ? [row.budget ? usedOf(row.budget) : '–'] : []),
          ]),
        )}
        <p>
          ${downloadButton({ label: 'Download as CSV', download: async () => saveCsv(by, items) })}
        </p>`
    },
  })
}

/** The share of each row in what all of them cost; without prices in their tokens, without these in requests. */
function weightsOf(items: readonly UsageRow[]): number[] {
  const measures = [
    ({ cost_usd }: UsageRow) => cost_usd ?? 0,
    ({ input_tokens, output_tokens }: UsageRow) => input_tokens + output_tokens,
    ({ requests }: UsageRow) => requests,
  ]
  const weights = measures.map(measure => items.map(measure))
  const used = weights.find(values => values.some(value => value > 0)) ?? items.map(() => 1)
  const total = used.reduce((sum, value) => sum + value, 0)
  return used.map(value => value / total)
}

const shareView = (share: number): View =>
  html`<span class="chips"
    ><progress max="1" value=${share} aria-hidden="true"></progress> ${formatPercent(share)}</span
  >`

/** The rows that are shown, with raw numbers, as a file. */
function saveCsv(by: Group, items: readonly UsageRow[]): void {
  const head = [
    by,
    'requests',
    'input_tokens',
    'cached_tokens',
    'output_tokens',
    'memory_tokens',
    'cost_usd',
  ]
  const nameOfRow = (row: UsageRow): string =>
    ({ model: row.model, user: row.external_id, key: row.key_name, session: row.session_id })[by] ??
    ''
  const lines = items.map(row => [
    // A cell that begins like a formula is text.
    `"${nameOfRow(row)
      .replace(/^[=+@-]/, "'$&")
      .replaceAll('"', '""')}"`,
    row.requests,
    row.input_tokens,
    row.cached_tokens,
    row.output_tokens,
    row.memory_tokens,
    row.cost_usd ?? '',
  ])
  saveFile(`usage-by-${by}.csv`, [head, ...lines].map(cells => cells.join(',')).join('\r\n'))
}

const none = (words: string): View => html`<span class="quiet">${words}</span>`

const nameOf: Record<Group, (row: UsageRow) => Children> = {
  model: ({ model }) =>
    model == null
      ? none('No model: stored and read by you')
      : html`<a href=${`${hrefTo('traces')}?${new URLSearchParams({ model }).toString()}`}
          >${model}</a
        >`,
  user: ({ external_id: user }) =>
    user == null
      ? none('No user: own vaults and teams')
      : html`<a href=${hrefTo('people', encodeURIComponent(user))}>${user}</a>`,
  key: ({ key_id, key_name, masked_key, org_id }) => {
    if (key_id == null) return none(org_id == null ? 'Keys that are gone' : 'Pipeline of a team')
    return html`${key_name} <code>${masked_key}</code>${org_id != null && ' of a team'}`
  },
  session: ({ session_id }) => session_id ?? none('No session'),
}

const pricesView = (prices: readonly ModelPrice[]): View =>
  html`<details>
    <summary>Prices</summary>
    <p class="quiet">
      List prices in dollars for a million tokens. What a provider charges beyond them (long
      prompts, writing to its cache, its tools) is not in the cost.
    </p>
    ${table(
      ['Model', 'Input', 'Cached', 'Output', 'Read on'],
      prices.map(({ model, input, cached, output, source, date }) => [
        model,
        ...[input, cached, output].map(formatPrice),
        source === null
          ? 'set by the operator'
          : html`<a href=${source} rel="noreferrer" target="_blank">${formatUtcDay(date!)}</a>`,
      ]),
    )}
  </details>`

const price = new Intl.NumberFormat('en', { minimumFractionDigits: 3, maximumFractionDigits: 4 })
const formatPrice = (dollars: number): string => price.format(dollars)
