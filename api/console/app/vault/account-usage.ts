import { downloadButton } from '#api/console/app/parts/buttons.ts'
import { call } from '#api/console/app/api-call.ts'
import { hrefWith, userHref } from '#api/console/app/address.ts'
import {
  dayMs,
  formatCompact,
  formatCost,
  formatCount,
  formatPercent,
  formatUtcDay,
  isoDay,
  pluralize,
} from '#api/console/app/format.ts'
import { html, renderComponent, type Children, type View } from '#api/console/app/html.ts'
import { daysField, fillMissingDays, table } from '#api/console/app/parts/chart.ts'
import { unpricedNote } from '#api/console/app/parts/cost.ts'
import { filters, selectField, useFilters } from '#api/console/app/parts/fields.ts'
import { figure, page, section } from '#api/console/app/parts/frame.ts'
import { emptyNote, listView, queryView } from '#api/console/app/parts/notes.ts'
import { sortedTable, type Column } from '#api/console/app/parts/sorted-table.ts'
import { stackedBars } from '#api/console/app/parts/stacked-bars.ts'
import { useCall, usePages, useQuery } from '#api/console/app/queries.ts'
import { saveFile } from '#api/console/app/vault/export.ts'
import { budgetBar, fullestOf, fullness } from '#api/console/app/vault/budget.ts'
import words from '#api/console/app/vault/words.json' with { type: 'json' }
import type {
  ModelPrice,
  UsageReportAnswer,
  UsageRow,
  UsageSums,
} from '#api/contract/generated/types.ts'

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
  const since = (days: number): string => isoDay(Date.now() - (days - 1) * dayMs)
  const start = since(days)
  const byDay = useCall('GET /v1/account/usage/report', {
    query: { group: 'day,model', start, limit: 1000 },
  })
  const before = useCall('GET /v1/account/usage/report', {
    query: { start: since(2 * days), end: since(days + 1), limit: 1 },
  })
  // Without a price there is no cost to draw.
  const drawn = byDay.answer?.total.cost_usd ? 'cost' : 'requests'
  const metric = known(metrics, fields.of || drawn)
  const listDays = by === 'session' ? Math.min(days, sessionDaysMax) : days
  const query = { group: `day,model,${by}`, start, limit: 1000 }
  const parts = useQuery(
    by === 'model' || listDays < days
      ? undefined
      : signal => call('GET /v1/account/usage/report', { query }, signal),
    [by, days],
  )
  const isWhole = by !== 'model' && listDays === days && parts.answer?.has_more === false
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
            ${sumsView(report.total, before.answer?.total, days)}
            ${daysView(report, metric, isWhole ? [by, parts.answer!.items] : ['model', report.items])}
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

/** How a sum differs from that of the time before: `+12 % on the 30 days before`. */
function changeOf(now: number | null, before: number | null | undefined, days: number): string {
  if (now === null || before == null || before === 0) return ''
  const share = Math.round((now / before - 1) * 100)
  return `${share >= 0 ? '+' : '−'}${formatCount(Math.abs(share))} % on the ${pluralize(days, 'day')} before`
}

const sumsView = (total: UsageSums, before: UsageSums | undefined, days: number): View => {
  // What was stored and read without a model counts tokens, too.
  const cached = total.input_tokens === 0 ? 0 : total.cached_tokens / total.input_tokens
  return html`<div class="stack">
    <dl class="figures">
      ${figure('Cost', formatCost(total.cost_usd), changeOf(total.cost_usd, before?.cost_usd, days) || 'by list prices')}
      ${figure('Requests', formatCount(total.requests), changeOf(total.requests, before?.requests, days) || 'of all kinds')}
      ${figure('Model input', formatCompact(total.input_tokens), `tokens, ${formatPercent(cached)} from a cache`)}
      ${figure('Model output', formatCompact(total.output_tokens), 'tokens')}
      ${figure('Memory tokens', formatCompact(total.memory_tokens), changeOf(total.memory_tokens, before?.memory_tokens, days) || 'stored and retrieved')}
    </dl>
    ${unpricedNote(total.unpriced_tokens)}
  </div>`
}

const valueOf: Record<Metric, (row: UsageRow) => number> = {
  cost: row => row.cost_usd ?? 0,
  requests: row => row.requests,
  // Only of models: what was stored without one has tokens of its own.
  tokens: row => (row.model == null ? 0 : row.input_tokens + row.output_tokens),
  memory_tokens: row => row.memory_tokens,
}

const colours = ['data', 'reflection', 'high', 'user', 'raw'] as const

/**
 * Each day, stacked by what the list below is by: what makes most of it, and all others as one. Where that is too much
 * for one answer, by model.
 */
function daysView(
  { period }: UsageReportAnswer,
  metric: Metric,
  [by, items]: readonly [Group, readonly UsageRow[]],
): View {
  const title = `${metrics[metric]} a day, by ${by}`
  const days = fillMissingDays(period, [], [])
  const nameOf = (row: UsageRow): string => wordsOf(by, row) || nameless[by]
  const sumsOf = (of: Metric) =>
    [...Map.groupBy(items, nameOf)]
      .map(([name, rows]) => [name, rows.reduce((sum, row) => sum + valueOf[of](row), 0)] as const)
      .sort(([, one], [, other]) => other - one)
  const found = sumsOf(metric).filter(([, sum]) => sum > 0)
  if (found.length === 0)
    return section(title, html`<p class="quiet">Nothing to draw in this time.</p>`)
  const isRest = found.length > colours.length
  const names = found.slice(0, colours.length - (isRest ? 1 : 0)).map(([name]) => name)
  // A name has one colour in all measures: the most requested have their own, others what is free.
  const known = sumsOf('requests').map(([name]) => name)
  const named = colours.slice(0, isRest ? -1 : undefined)
  const free = named.filter((_, at) => !names.includes(known[at]!))
  const series = names.map(name => [name, named[known.indexOf(name)] ?? free.shift()!] as const)
  const byDay = Map.groupBy(items, ({ day }) => day!)
  const bars = days.map(({ at }) => {
    const day = isoDay(at)
    const rows = byDay.get(day) ?? []
    const of = (wanted: (name: string) => boolean): number =>
      rows.filter(row => wanted(nameOf(row))).reduce((sum, row) => sum + valueOf[metric](row), 0)
    const counts = [
      ...names.map(one => of(name => name === one)),
      ...(isRest ? [of(name => !names.includes(name))] : []),
    ]
    const href = hrefWith({ since: day, until: day }, 'traces')
    return { label: formatUtcDay(at), counts, href }
  })
  const write = metric === 'cost' ? formatCost : undefined
  const total = found.reduce((sum, [, of]) => sum + of, 0)
  return section(
    title,
    stackedBars({
      bars,
      series: isRest ? [...series, ['all others', colours.at(-1)!]] : series,
      summary: `${metrics[metric]}: ${(write ?? formatCount)(total)} in ${pluralize(days.length, 'day')}, a colour for each ${by}`,
      ...(write && { format: write }),
    }),
  )
}

const columns: readonly Column<UsageRow>[] = [
  { name: 'Requests', value: row => row.requests, cell: row => formatCount(row.requests) },
  { name: 'Input', value: row => row.input_tokens, cell: row => formatCount(row.input_tokens) },
  { name: 'Cached', value: row => row.cached_tokens, cell: row => formatCount(row.cached_tokens) },
  { name: 'Output', value: row => row.output_tokens, cell: row => formatCount(row.output_tokens) },
  { name: 'Memory', value: row => row.memory_tokens, cell: row => formatCount(row.memory_tokens) },
  { name: 'Cost', value: row => row.cost_usd ?? 0, cell: row => formatCost(row.cost_usd) },
]

function UsageList({ by, start }: { by: Group; start: string }): View {
  const list = usePages('GET /v1/account/usage/report', { query: { group: by, start, limit: 50 } })
  return listView(list, {
    what: 'usage',
    empty: ['No requests in this time', 'Requests of the account appear here.'],
    show(items) {
      const weights = new Map(weightsOf(items).map((share, index) => [items[index]!, share]))
      // What was stored and read without a model has no model's columns.
      const own = by === 'model' ? items.find(({ model }) => model == null) : undefined
      const share: Column<UsageRow> = {
        name: items.some(row => row.cost_usd) ? 'Share of cost' : 'Share',
        value: row => weights.get(row)!,
        cell: row => shareView(weights.get(row)!),
      }
      const budget: Column<UsageRow> = {
        name: 'Budget',
        value: row => (row.budget ? fullness(row.budget) : -1),
        cell: row => (row.budget ? budgetBar(row.budget, fullestOf(row.budget)) : '–'),
      }
      return html`${sortedTable({
          columns: [
            { name: groups[by], value: row => wordsOf(by, row), cell: nameOf[by] },
            share,
            ...(items.some(row => row.budget) ? [budget] : []),
            ...columns,
          ],
          rows: items
            .filter(row => row !== own)
            .toSorted((one, other) => (other.cost_usd ?? 0) - (one.cost_usd ?? 0)),
        })}
        ${
          own &&
          html`<p class="quiet">
            ${`Stored and read by you, without a model: ${pluralize(own.requests, 'request')}, ${formatCount(own.memory_tokens)} memory tokens, ${formatCount(own.input_tokens + own.output_tokens)} tokens of turns.`}
          </p>`
        }
        <p>
          ${downloadButton({ label: 'Download as CSV', download: async () => saveCsv(by, items) })}
        </p>`
    },
  })
}

const wordsOf = (by: Group, row: UsageRow): string =>
  ({ model: row.model, user: row.external_id, key: row.key_name, session: row.session_id })[by] ??
  ''

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
  html`<span class="share"
    ><progress max="1" value=${share} aria-hidden="true"></progress>
    <span>${formatPercent(share)}</span></span
  >`

/** The rows that are shown, with raw numbers, as a file. */
function saveCsv(by: Group, items: readonly UsageRow[]): void {
  const fields = [
    'requests',
    'input_tokens',
    'cached_tokens',
    'output_tokens',
    'memory_tokens',
    'cost_usd',
  ] as const
  const lines = items.map(row => [
    // A cell that begins like a formula is text.
    `"${wordsOf(by, row)
      .replace(/^[=+@-]/, "'$&")
      .replaceAll('"', '""')}"`,
    ...fields.map(name => row[name] ?? ''),
  ])
  saveFile(
    `usage-by-${by}.csv`,
    [[by, ...fields], ...lines].map(cells => cells.join(',')).join('\r\n'),
  )
}

/** Names of what has none. */
const nameless: Record<Group, string> = words.nameless

const none = (words: string): View => html`<span class="quiet">${words}</span>`

const nameOf: Record<Group, (row: UsageRow) => Children> = {
  model: ({ model }) =>
    model == null
      ? none(nameless.model)
      : html`<a href=${hrefWith({ model }, 'traces')}>${model}</a>`,
  user: ({ external_id: user }) =>
    user == null ? none(nameless.user) : html`<a href=${userHref(user)}>${user}</a>`,
  key: ({ key_id, key_name, masked_key, org_id }) => {
    if (key_id == null) return none(org_id == null ? nameless.key : 'Pipeline of a team')
    return html`${key_name} <code>${masked_key}</code>${org_id != null && ' of a team'}`
  },
  session: ({ session_id }) => session_id ?? none(nameless.session),
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
