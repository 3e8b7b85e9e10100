import { hrefTo, hrefWith, userHref } from '#api/console/app/address.ts'
import {
  dayMs,
  formatCost,
  formatCount,
  formatPercent,
  formatShortDay,
  formatUtcDay,
  isoDay,
  pluralize,
} from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { buttonLink } from '#api/console/app/parts/buttons.ts'
import { table } from '#api/console/app/parts/chart.ts'
import { failedView, figure, page, section } from '#api/console/app/parts/frame.ts'
import { emptyNote, queryView, row, rows } from '#api/console/app/parts/notes.ts'
import { stackedBars } from '#api/console/app/parts/stacked-bars.ts'
import { useCall } from '#api/console/app/queries.ts'
import { fullestOf, fullness } from '#api/console/app/vault/budget.ts'
import { Overview } from '#api/console/app/vault/overview.ts'
import { workOf } from '#api/console/app/vault/operations.ts'
import { failureOf } from '#api/console/app/vault/trace-words.ts'
import { summaryView } from '#api/console/app/vault/traces.ts'
import words from '#api/console/app/vault/words.json' with { type: 'json' }
import type {
  AccountAnswer,
  AccountUser,
  CallDay,
  ListTracesAnswer,
  UsageReportAnswer,
} from '#api/contract/generated/types.ts'

/** The account as its owner meets it: users, calls, cost, and what needs attention. */
export function Home(): View {
  const account = useCall('GET /v1/account')
  // Whose account has no users works with a vault of their own.
  if (account.answer?.users === 0) return renderComponent(Overview, {})
  return page({
    title: 'Home',
    description:
      account.answer &&
      `${account.answer.email}, since ${formatShortDay(account.answer.created_at)}.`,
    children: queryView(account, 'the account', homeView),
  })
}

const homeView = (account: AccountAnswer): View =>
  html`${renderComponent(Attention, { account })} ${renderComponent(Figures, { account })}
    ${callsChart(account.calls_by_day)}
    <div class="halves">${renderComponent(MostActive, {})} ${renderComponent(Newest, {})}</div>`

/** As many users are looked at, and listed. */
const [lookedMax, activeMax] = [50, 5]

/** The users who asked most in a week, each leading to their page. */
function MostActive(): View {
  const query = { group: 'user', start: isoDay(Date.now() - 6 * dayMs), limit: lookedMax }
  const report = useCall('GET /v1/account/usage/report', { query })
  const show = ({ items }: UsageReportAnswer): View => {
    const users = items
      .filter(({ external_id: user }) => user != null)
      .sort((one, other) => other.requests - one.requests)
      .slice(0, activeMax)
    if (users.length === 0)
      return emptyNote('No user in 7 days', 'Who asks or is told something appears here.')
    return table(
      ['User', 'Calls and stores', 'Cost', 'Budget'],
      users.map(({ external_id: user, requests, cost_usd, budget }) => [
        html`<a href=${userHref(user!)}>${user}</a>`,
        formatCount(requests),
        formatCost(cost_usd),
        budget ? formatPercent(fullness(budget)) : '–',
      ]),
    )
  }
  const link = html`<a href=${hrefTo('people')}>Users</a>`
  return section('Most active users, 7 days', queryView(report, 'the users', show), link)
}

/** The newest calls; what failed is red. */
function Newest(): View {
  const calls = useCall('GET /v1/traces', { query: { account: true, limit: 5 } })
  const show = ({ items }: ListTracesAnswer): View =>
    rows(items.map(item => [item.trace_id, row(summaryView(item))]))
  const link = html`<a href=${hrefTo('traces')}>Calls</a>`
  return section('Newest calls', queryView(calls, 'the calls', show), link)
}

const callsOf = (day: CallDay | undefined): number =>
  day ? day.given + day.nothing + day.without_memory + day.failed + day.other : 0

function Figures({ account }: { account: AccountAnswer }): View {
  const { users, users_new_7_days, users_active_7_days, calls_by_day } = account
  const now = Date.now()
  const month = `${isoDay(now).slice(0, 7)}-01`
  const report = useCall('GET /v1/account/usage/report', { query: { start: month, limit: 1 } })
  const dayOf = (at: number) => calls_by_day.find(({ day }) => day === isoDay(at))
  const [today, yesterday] = [dayOf(now), dayOf(now - dayMs)]
  return html`<dl class="figures">
    ${figure(
      'Users',
      formatCount(users),
      html`<a href=${hrefTo('people')}>${`+${formatCount(users_new_7_days)} in 7 days`}</a>`,
    )}
    ${figure('Vaults with calls', formatCount(users_active_7_days), 'in the last 7 days')}
    ${figure('Calls today', formatCount(callsOf(today)), `yesterday ${formatCount(callsOf(yesterday))}`)}
    ${figure(
      'Failed calls',
      failedView(formatCount(today?.failed ?? 0), !today?.failed),
      html`<a href=${hrefWith({ status: 'failed' }, 'traces')}
        >${`today; yesterday ${formatCount(yesterday?.failed ?? 0)}`}</a
      >`,
    )}
    ${figure(
      'Cost of the month',
      report.answer ? formatCost(report.answer.total.cost_usd) : '–',
      html`<a href=${hrefTo('usage')}>by list prices</a>`,
    )}
  </dl>`
}

const outcomes = words.outcomes as [name: string, colour: string][]

function callsChart(days: readonly CallDay[]): View {
  if (days.length === 0)
    return section(
      'Calls by outcome',
      emptyNote('No calls in 14 days', 'Calls that read memory appear here.'),
    )
  const byDay = new Map(days.map(day => [day.day, day]))
  const bars = []
  for (let at = Date.parse(days[0]!.day); at <= Date.now(); at += dayMs) {
    const day = byDay.get(isoDay(at))
    const counts = day
      ? [day.given, day.nothing, day.without_memory, day.failed, day.other]
      : outcomes.map(() => 0)
    const href = hrefWith({ since: isoDay(at), until: isoDay(at) }, 'traces')
    bars.push({ label: formatUtcDay(at), counts, href })
  }
  const all = days.reduce((sum, day) => sum + callsOf(day), 0)
  const failed = days.reduce((sum, day) => sum + day.failed, 0)
  const summary = `${pluralize(all, 'call')} in ${pluralize(bars.length, 'day')}, ${formatCount(failed)} of them failed`
  return section(
    `Calls by outcome, ${pluralize(bars.length, 'day')}`,
    stackedBars({ bars, series: outcomes, summary }),
  )
}

/** A budget is told of from here on. */
const budgetWarning = 0.8

/** What does not work, with the page that mends it; nothing on good days. */
function Attention({ account }: { account: AccountAnswer }): View | null {
  const models = useCall('GET /v1/models', {})
  const failed = useCall('GET /v1/operations', { query: { state: 'failed', limit: 5 } })
  const today = isoDay(Date.now())
  const query = { account: true, failed: true, since: today, limit: 1 }
  const lastCall = useCall('GET /v1/traces', { query }).answer?.items[0]
  const users = useCall('GET /v1/account/users', { query: { limit: 200 } })
  const webhooks = useCall('GET /v1/account/webhooks')
  const keys = useCall('GET /v1/account/provider-keys')
  const ownKeys = keys.answer?.provider_keys.map(({ provider }) => provider) ?? []
  // Without any list the one refusal names them all.
  const ofAll = ownKeys.some(name => models.fault?.message.includes(name))
    ? models.fault
    : undefined
  const faults = (models.answer?.providers ?? []).flatMap(({ provider, fault }) =>
    fault !== undefined && ownKeys.includes(provider) ? [fault] : [],
  )
  const work = failed.answer?.items.length ?? 0
  const pieces = `${failed.answer?.has_more ? 'More than ' : ''}${pluralize(work, 'piece')}`
  const [lastWork] = failed.answer?.items ?? []
  const refused = account.calls_by_day.find(({ day }) => day === today)?.failed ?? 0
  const providers = ofAll ? faultsIn(ofAll.message, ownKeys) : faults
  const toMend: (ToMend | false)[] = [
    ...providers.map((words): ToMend => [words, 'Model providers', hrefTo('providers')]),
    refused > 0 && [
      `${pluralize(refused, 'call')} of today failed${lastCall?.error ? lastOf(refused, failureOf(lastCall)) : ''}`,
      'Failed calls',
      hrefWith({ status: 'failed', since: today }, 'traces'),
    ],
    ...(users.answer?.items ?? [])
      .filter(({ budget }) => budget && fullness(budget) >= budgetWarning)
      .map(budgetItem),
    lastWork !== undefined && [
      `${pieces} of work failed${lastOf(work, workOf(lastWork))}`,
      'Work',
      hrefWith({ state: 'failed' }, 'operations'),
    ],
    ...(webhooks.answer?.webhooks ?? [])
      .filter(({ active }) => !active)
      .map(({ url }): ToMend => [`${url} is switched off`, 'Webhooks', hrefTo('webhooks')]),
  ]
  const items = toMend.filter(item => item !== false)
  if (items.length === 0) return null
  return section(
    'Needs attention',
    html`<div class="attention">
      ${rows(
        items.map(([words, label, href]) => [
          words,
          row(html`<p>${words}</p>`, buttonLink(label, href, { about: words })),
        ]),
      )}
    </div>`,
  )
}

/** What is wrong with each provider of the account, out of the one refusal that names all. */
const faultsIn = (message: string, ownKeys: readonly string[]): string[] =>
  message
    .replace(/^[^:]+: /, '')
    .split('; ')
    .filter(words => ownKeys.some(name => words.startsWith(name)))

/** The newest of some faults, behind their count. */
const lastOf = (count: number, words: string): string =>
  `${count > 1 ? ', the last' : ''}: ${words}`

/** What is wrong, and the page that mends it. */
type ToMend = [words: string, label: string, href: string]

function budgetItem({ external_id: about, budget }: AccountUser): ToMend {
  return [`${about} has used ${fullestOf(budget!)}`, 'Budget', userHref(about)]
}
