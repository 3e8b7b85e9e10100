import { addressOf } from '#api/console/app/address.ts'
import { useAsked } from '#api/console/app/asked.ts'
import { call } from '#api/console/app/call.ts'
import { html, type View } from '#api/console/app/html.ts'
import { figure, page, section } from '#api/console/app/parts/frame.ts'
import { emptyNote, shown } from '#api/console/app/parts/states.ts'
import { debtMeter } from '#api/console/app/vault/debt-meter.ts'
import { debtNow, tiersNow } from '#api/console/app/vault/standing.ts'
import { agoOf, brief, count, shortDayOf } from '#api/console/app/words.ts'

/** How a vault stands: how much is in it, over which time, and what waits. */
export function Overview(): View {
  const stats = useAsked(signal => call('GET /v1/memory/stats', {}, signal), [])
  const tiers = useAsked(tiersNow, [])
  const debt = useAsked(debtNow, [])
  return page({
    title: 'Overview',
    words: 'What the vault of this key holds.',
    children: html`<div class="stack-wide">
      ${shown(stats, 'the vault', ({ memories, total_tokens, oldest, newest }) =>
        memories === 0
          ? emptyNote(
              'Nothing is remembered yet',
              'Exchanges that your product ingests, and files you upload, appear here.',
              html`<a class="button button-main" href=${addressOf('files')}>Upload a file</a>`,
            )
          : html`<dl class="figures">
              ${figure('Memories', count(memories), 'in all tiers and sessions')}
              ${figure('Tokens', brief(total_tokens), 'of text')}
              ${oldest && figure('Oldest', shortDayOf(oldest), agoOf(oldest))}
              ${newest && figure('Newest', shortDayOf(newest), agoOf(newest))}
            </dl>`,
      )}
      ${section(
        'Tiers of the core vault',
        shown(
          tiers,
          'tiers',
          ({ raw, tier2, tier3 }) =>
            html`<dl class="figures">
              ${figure('Raw', count(raw), 'what was said')}
              ${figure('Reflections', count(tier2), 'what happened')}
              ${figure('High-level', count(tier3), 'what it means')}
            </dl>`,
        ),
      )}
      ${section('Waiting to be consolidated', shown(debt, 'the debt', debtMeter))}
    </div>`,
  })
}
