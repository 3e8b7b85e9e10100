import { html, type View } from '#api/console/app/html.ts'
import type { Debt } from '#api/console/app/vault/standing.ts'
import { count, counted } from '#api/console/app/words.ts'

/** How much waits for reflection at each tier, against where the service suggests it. */
export function debtMeter({ unconsolidated, threshold_importance, suggestion }: Debt): View {
  const { raw, tier2 } = unconsolidated
  return html`<div class="stack">
    ${bar(
      'Raw memories',
      raw.importance_equiv,
      threshold_importance,
      `${counted(raw.units, 'memory', 'memories')}, ${counted(raw.est_tokens, 'token')}`,
    )}
    ${bar(
      'Reflections',
      tier2.importance,
      threshold_importance,
      `${counted(tier2.count, 'reflection')}, ${counted(tier2.est_tokens, 'token')}`,
    )}
    <p class=${suggestion ? 'notice' : 'quiet'}>
      ${suggestion ?? 'Nothing is due: consolidation is suggested once a bar is full.'}
    </p>
  </div>`
}

const bar = (name: string, value: number, full: number, words: string): View =>
  html`<div class="debt">
    <div class="debt-head">
      <b>${name}</b>
      <span class="quiet">${count(Math.round(value))} of ${count(full)} importance</span>
    </div>
    <meter
      min="0"
      max=${full}
      high=${full - 0.5}
      optimum="0"
      value=${Math.min(value, full)}
      aria-label=${`${name} waiting to be consolidated`}
    ></meter>
    <span class="quiet">${words}</span>
  </div>`
