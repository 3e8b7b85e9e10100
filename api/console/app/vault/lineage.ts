import { useState } from 'preact/hooks'
import { useAsked } from '#api/console/app/asked.ts'
import { call } from '#api/console/app/call.ts'
import { html, type Children, type View } from '#api/console/app/html.ts'
import { importanceChip, tierChip, type Tier } from '#api/console/app/parts/chips.ts'
import { dialog } from '#api/console/app/parts/dialog.ts'
import { emptyNote, faultNote, waitingNote } from '#api/console/app/parts/states.ts'
import { count, counted, momentOf, spanOf } from '#api/console/app/words.ts'

type Kin = {
  id: string
  text: string
  tier: Tier
  at: string
  importance?: number | null | undefined
}

/** What a memory was made of, and what was made of it; every one of them leads further. */
export function Lineage({ memory, onClose }: { memory: Kin; onClose: () => void }): View {
  const [trail, setTrail] = useState<Kin[]>([memory])
  const here = trail.at(-1)!
  const { answer, fault, waiting, again } = useAsked(
    signal => call('POST /v1/memory/inspect', { body: { memory_id: here.id } }, signal),
    [here.id],
  )
  const visit = (kin: Kin): void => setTrail([...trail, kin])
  const current = answer?.memory_id === here.id ? answer : undefined
  const above = current?.consolidated_into ?? []
  const sources = current?.sources ?? []
  return dialog({
    title: 'Lineage',
    wide: true,
    onClose,
    children: html`<div class="stack">
      ${
        trail.length > 1 &&
        html`<button type="button" class="button" onClick=${() => setTrail(trail.slice(0, -1))}>
          Back to ${trail.at(-2)!.tier === here.tier ? 'the one before' : 'where you came from'}
        </button>`
      }
      ${faultNote(fault, again)} ${waiting && !current && waitingNote('the lineage', 4)}
      ${
        current &&
        html`<div class="lineage">
          ${level(
            'Covered by',
            above.length === 0
              ? here.tier === 3
                ? 'A high-level reflection is the top.'
                : 'Nothing yet: no reflection covers it.'
              : above.map(({ content, date, ...kin }) =>
                  kinCard({ ...kin, text: content, at: date }, visit),
                ),
          )}
          <section class="lineage-here" aria-label="The memory itself">
            <div class="chips">${tierChip(here.tier)} ${importanceChip(here.importance)}</div>
            <p class="memory-text">${here.text}</p>
            ${current.covers && html`<p class="quiet">About ${spanOf(current.covers)}</p>`}
          </section>
          ${
            here.tier > 1 &&
            level(
              'Made from',
              sources.length === 0
                ? 'Its sources were deleted.'
                : sources.map(({ content, date, ...kin }) =>
                    kinCard({ ...kin, text: content, at: date }, visit),
                  ),
              `${counted(current.sources_total, 'source')}${
                current.sources_deleted > 0
                  ? `, ${count(current.sources_deleted)} deleted since`
                  : ''
              }${current.truncated ? '; the first 500 are shown' : ''}`,
            )
          }
        </div>`
      }
      ${!current && !waiting && !fault && emptyNote('Nothing to show', 'The memory has no lineage.')}
    </div>`,
  })
}

const level = (title: string, kin: View[] | string, words?: string): View =>
  html`<section class="lineage-level">
    <h3>${title}</h3>
    ${words && html`<p class="quiet">${words}</p>`}
    ${typeof kin === 'string' ? html`<p class="quiet">${kin}</p>` : list(kin)}
  </section>`

const list = (kin: Children[]): View =>
  html`<ul class="plain">
    ${kin.map((one, index) => html`<li key=${index}>${one}</li>`)}
  </ul>`

const kinCard = (kin: Kin, visit: (kin: Kin) => void): View =>
  html`<button type="button" class="kin" onClick=${() => visit(kin)}>
    <span class="chips">${tierChip(kin.tier)} ${importanceChip(kin.importance)}</span>
    <span class="kin-text">${kin.text}</span>
    <span class="quiet">${momentOf(kin.at)}</span>
  </button>`
