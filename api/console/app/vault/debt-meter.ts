import { html, type View } from '#api/console/app/html.ts'
import type { Debt } from '#api/console/app/vault/vault-status.ts'
import { formatCount, pluralize } from '#api/console/app/format.ts'

/** The reflection debt of each tier, relative to the service's threshold. */
export function debtMeter({ unconsolidated, threshold_importance, suggestion }: Debt): View {
  const { raw, tier2 } = unconsolidated
  return html`<div class="stack">
    ${progressMeter(
      'Raw memories',
      raw.importance_equiv,
      threshold_importance,
      `${pluralize(raw.units, 'memory', 'memories')}, ${pluralize(raw.est_tokens, 'token')}`,
    )}
    ${progressMeter(
      'Reflections',
      tier2.importance,
      threshold_importance,
      `${pluralize(tier2.count, 'reflection')}, ${pluralize(tier2.est_tokens, 'token')}`,
    )}
    <p class=${suggestion ? 'notice' : 'quiet'}>
      ${
        suggestion
          ? 'Enough has come together to be summarized: consolidate it here, or run “npm run consolidate”.'
          : 'Nothing is due: consolidation is suggested once a bar is full.'
      }
    </p>
  </div>`
}

const progressMeter = (name: string, value: number, full: number, words: string): View =>
  html`<div class="debt">
    <div class="debt-head">
      <b>${name}</b>
      <span class="quiet"
        >${formatCount(Math.round(value))} of ${formatCount(full)} importance</span
      >
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
