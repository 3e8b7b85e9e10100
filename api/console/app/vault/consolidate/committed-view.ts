import { useState } from 'preact/hooks'
import { pluralize } from '#api/console/app/format.ts'
import { hrefTo } from '#api/console/app/hash-route.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { importanceChip, tierChip } from '#api/console/app/parts/chips.ts'
import { section } from '#api/console/app/parts/frame.ts'
import type { HeldBatch } from '#api/console/app/vault/consolidate/held-batch.ts'
import { Lineage } from '#api/console/app/vault/lineage.ts'
import type { CommitAnswer } from '#api/contract/generated/types.ts'

/** A committed batch: its reflections, each leading to its sources. */
export function CommittedView({
  held: { batch, proposals },
  answer,
  onNext,
}: {
  held: HeldBatch
  answer: CommitAnswer
  onNext: () => void
}): View {
  const [shown, setShown] = useState<number>()
  const { created, tier, sources_consolidated } = answer
  const memoryAt = (index: number) => ({
    id: created[index]!.id,
    text: proposals[index]!.text.trim(),
    importance: created[index]!.importance,
    tier,
    at: batch.covers.to,
  })
  return section(
    `${pluralize(created.length, 'reflection')} made of ${pluralize(sources_consolidated, 'memory', 'memories')}`,
    html`<div class="stack">
      <ul class="plain rows">
        ${created.map(({ id }, index) => {
          const { text, importance } = memoryAt(index)
          return html`<li key=${id} class="row">
            <div class="row-main">
              <p class="memory-text">${text}</p>
              <p class="chips">${tierChip(tier)} ${importanceChip(importance)}</p>
            </div>
            <button
              type="button"
              class="button"
              aria-label=${`Lineage: ${text.slice(0, 60)}`}
              onClick=${() => setShown(index)}
            >
              Lineage
            </button>
          </li>`
        })}
      </ul>
      <div class="actions">
        <button type="button" class="button button-main" onClick=${onNext}>Next batch</button>
        <a class="button" href=${`${hrefTo('reflections')}${tier === 3 ? '?tier=3' : ''}`}>
          All reflections
        </a>
      </div>
      ${
        shown !== undefined &&
        renderComponent(Lineage, {
          memory: memoryAt(shown),
          onClose: () => setShown(undefined),
        })
      }
    </div>`,
  )
}
