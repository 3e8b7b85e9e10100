import { hrefTo } from '#api/console/app/hash-route.ts'
import { useQuery } from '#api/console/app/use-query.ts'
import { call } from '#api/console/app/api-call.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { figure, page, section } from '#api/console/app/parts/frame.ts'
import { emptyNote, queryView } from '#api/console/app/parts/query-view.ts'
import { debtMeter } from '#api/console/app/vault/debt-meter.ts'
import { historyChart } from '#api/console/app/vault/history-chart.ts'
import { latestList } from '#api/console/app/vault/latest-memories.ts'
import { readOnce } from '#api/console/app/vault/read-once.ts'
import { RecalledToday } from '#api/console/app/vault/recalled-today.ts'
import { Today } from '#api/console/app/vault/today.ts'
import { fetchDebt } from '#api/console/app/vault/vault-status.ts'
import {
  formatRelativeTime,
  formatCompact,
  formatCount,
  formatShortDay,
} from '#api/console/app/format.ts'
import type { ListedMemory, VaultStats } from '#api/contract/generated/types.ts'

type Latest = { items: ListedMemory[]; counts: Record<'raw' | 'tier2' | 'tier3', number> }

const latestShown = 5

/** What a vault holds: over time, last of all, today, and what waits for reflection. */
export function Overview(): View {
  const stats = useQuery(
    signal => call('GET /v1/memory/stats', { query: { by_day: true } }, signal),
    [],
  )
  return page({
    title: 'Overview',
    description: 'What the vault of this key holds.',
    children: html`<div class="stack-wide">${queryView(stats, 'the vault', statsView)}</div>`,
  })
}

const statsView = (stats: VaultStats): View =>
  stats.memories === 0 ? emptyVault() : renderComponent(FilledVault, { stats })

const emptyVault = (): View =>
  emptyNote(
    'Nothing is remembered yet',
    'What your product or your AI client says appears here from the first exchange on.',
    html`<div class="actions">
      <a class="button button-main" href=${hrefTo('connect')}>Connect a client</a>
      <a class="button" href=${hrefTo('files')}>Upload a file</a>
    </div>`,
  )

function FilledVault({ stats }: { stats: VaultStats }): View {
  const { memories, total_tokens, oldest, newest, by_day } = stats
  const latest = useQuery(signal => readOnce(['latest', stats], () => fetchLatest(signal)), [stats])
  const debt = useQuery(fetchDebt, [])
  return html`<div class="stack-wide">
    <dl class="figures">
      ${figure('Memories', formatCount(memories), 'in all tiers and sessions')}
      ${figure('Tokens', formatCompact(total_tokens), 'of text')}
      ${oldest && figure('Oldest', formatShortDay(oldest), formatRelativeTime(oldest))}
      ${newest && figure('Newest', formatShortDay(newest), formatRelativeTime(newest))}
    </dl>
    ${by_day && by_day.length > 0 && section('Memories over time', historyChart(by_day))}
    <div class="halves">
      ${section(
        'Latest memories',
        queryView(latest, 'the latest memories', ({ items }) => latestList(items)),
        html`<a href=${hrefTo('timeline')}>Timeline</a>`,
      )}
      <div class="stack-wide">
        ${section(
          'Recalled today',
          renderComponent(RecalledToday, {}),
          html`<a href=${hrefTo('traces')}>Answers</a>`,
        )}
        ${section('Used today', renderComponent(Today, {}))}
        ${section('Tiers of the core vault', queryView(latest, 'tiers', tierFigures))}
      </div>
    </div>
    ${section(
      'Waiting to be consolidated',
      queryView(debt, 'what waits', debtMeter),
      html`<a href=${hrefTo('consolidate')}>Consolidate</a>`,
    )}
  </div>`
}

/** The last of the core vault, which is billed, and how many there are of each tier. */
async function fetchLatest(signal: AbortSignal): Promise<Latest> {
  const { items, tier_counts } = await call(
    'GET /v1/memory/list',
    { query: { limit: latestShown } },
    signal,
  )
  return { items, counts: tier_counts ?? { raw: 0, tier2: 0, tier3: 0 } }
}

const tierFigures = ({ counts: { raw, tier2, tier3 } }: Latest): View =>
  html`<dl class="figures">
    ${figure('Raw', formatCount(raw), 'what was said')}
    ${figure('Reflections', formatCount(tier2), 'what happened')}
    ${figure('High-level', formatCount(tier3), 'what it means')}
  </dl>`
