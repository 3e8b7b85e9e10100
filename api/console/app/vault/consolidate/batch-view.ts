import {
  formatCount,
  formatDateRange,
  formatDateTime,
  formatTime,
  pluralize,
} from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { figure, section } from '#api/console/app/parts/frame.ts'
import type { HeldBatch, ProposalsUpdate } from '#api/console/app/vault/consolidate/held-batch.ts'
import { ModelForm } from '#api/console/app/vault/consolidate/model-form.ts'
import { ProposalsForm } from '#api/console/app/vault/consolidate/proposals-form.ts'
import type { CheckedOutBatch, CommitAnswer } from '#api/contract/generated/types.ts'

/** More rows make the page slow; the model is given all. */
const sourcesMax = 200

type Props = HeldBatch & {
  updateProposals: (update: ProposalsUpdate) => void
  onCommitted: (answer: CommitAnswer) => void
  onReleased: () => void
}

/** A batch that is lent: what it holds, the model that reads it, and what would be stored of it. */
export function BatchView({
  batch,
  proposals,
  updateProposals,
  onCommitted,
  onReleased,
}: Props): View {
  return html`<div class="stack-wide">
    <dl class="figures">
      ${figure('Memories', formatCount(batch.count), formatDateRange(batch.covers))}
      ${figure('Tokens', formatCount(batch.est_tokens), 'about, of their texts')}
      ${figure('Lent until', formatTime(batch.lease_expires_at), 'a later commit is refused')}
    </dl>
    ${section(
      'Your model',
      renderComponent(ModelForm, {
        batch,
        onProposed: added =>
          updateProposals(before => [...before.filter(({ text }) => text.trim() !== ''), ...added]),
      }),
      html`<button type="button" class="button" onClick=${onReleased}>Give the batch up</button>`,
    )}
    <div class="halves">
      ${section(
        'Proposed reflections',
        html`<p class="quiet">
            ${
              proposals.length === 0
                ? 'None yet: run a model, or write them by hand.'
                : `Each will have all ${pluralize(batch.count, 'memory', 'memories')} of the batch as its sources.`
            }
          </p>
          ${renderComponent(ProposalsForm, { batch, proposals, update: updateProposals, onCommitted })}`,
      )}
      ${section('Sources', sourceList(batch))}
    </div>
  </div>`
}

const sourceList = ({ memories }: CheckedOutBatch): View =>
  html`<div class="stack">
    <ol class="plain rows">
      ${memories.slice(0, sourcesMax).map(
        ({ text, date }, index) =>
          html`<li key=${index} class="row">
            <div class="row-main">
              <p class="memory-text">${text}</p>
              <p class="quiet">${formatDateTime(date)}</p>
            </div>
          </li>`,
      )}
    </ol>
    ${
      memories.length > sourcesMax &&
      html`<p class="quiet">The first ${sourcesMax} are shown; the model gets all.</p>`
    }
  </div>`
