import { hrefTo } from '#api/console/app/hash-route.ts'
import { useQuery } from '#api/console/app/use-query.ts'
import { call } from '#api/console/app/api-call.ts'
import { html, type View } from '#api/console/app/html.ts'
import { figure, page, section } from '#api/console/app/parts/frame.ts'
import { emptyNote, queryView } from '#api/console/app/parts/query-view.ts'
import { debtMeter } from '#api/console/app/vault/debt-meter.ts'
import { fetchDebt, fetchTierCounts } from '#api/console/app/vault/vault-status.ts'
import {
  formatRelativeTime,
  formatCompact,
  formatCount,
  formatShortDay,
} from '#api/console/app/format.ts'

/** The status of a vault: size, time span and reflection debt. */
export function Overview(): View {
  const stats = useQuery(signal => call('GET /v1/memory/stats', {}, signal), [])
  const tiers = useQuery(fetchTierCounts, [])
  const debt = useQuery(fetchDebt, [])
  return page({
    title: 'Overview',
    description: 'What the vault of this key holds.',
    children: html`<div class="stack-wide">
      ${queryView(stats, 'the vault', ({ memories, total_tokens, oldest, newest }) =>
        memories === 0
          ? emptyNote(
              'Nothing is remembered yet',
              'Exchanges that your product ingests, and files you upload, appear here.',
              html`<a class="button button-main" href=${hrefTo('files')}>Upload a file</a>`,
            )
          : html`<dl class="figures">
              ${figure('Memories', formatCount(memories), 'in all tiers and sessions')}
              ${figure('Tokens', formatCompact(total_tokens), 'of text')}
              ${oldest && figure('Oldest', formatShortDay(oldest), formatRelativeTime(oldest))}
              ${newest && figure('Newest', formatShortDay(newest), formatRelativeTime(newest))}
            </dl>`,
      )}
      ${section(
        'Tiers of the core vault',
        queryView(
          tiers,
          'tiers',
          ({ raw, tier2, tier3 }) =>
            html`<dl class="figures">
              ${figure('Raw', formatCount(raw), 'what was said')}
              ${figure('Reflections', formatCount(tier2), 'what happened')}
              ${figure('High-level', formatCount(tier3), 'what it means')}
            </dl>`,
        ),
      )}
      ${section('Waiting to be consolidated', queryView(debt, 'the debt', debtMeter))}
    </div>`,
  })
}
