import { useState } from 'preact/hooks'
import { useQuery } from '#api/console/app/use-query.ts'
import { call } from '#api/console/app/api-call.ts'
import { html, type Children, type View } from '#api/console/app/html.ts'
import { importanceChip, tierChip, type Tier } from '#api/console/app/parts/chips.ts'
import { dialog } from '#api/console/app/parts/dialog.ts'
import { emptyNote, faultNote, loadingNote } from '#api/console/app/parts/query-view.ts'
import { formatCount, pluralize, formatDateTime, formatDateRange } from '#api/console/app/format.ts'

type LineageMemory = {
  id: string
  text: string
  tier: Tier
  at: string
  importance?: number | null | undefined
}

/** The sources of a memory and the reflections made of it, each with its own lineage. */
export function Lineage({ memory, onClose }: { memory: LineageMemory; onClose: () => void }): View {
  const [trail, setTrail] = useState<LineageMemory[]>([memory])
  const currentMemory = trail.at(-1)!
  const { answer, fault, isLoading, refetch } = useQuery(
    signal => call('POST /v1/memory/inspect', { body: { memory_id: currentMemory.id } }, signal),
    [currentMemory.id],
  )
  const visit = (kin: LineageMemory): void => setTrail([...trail, kin])
  const current = answer?.memory_id === currentMemory.id ? answer : undefined
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
          Back to
          ${trail.at(-2)!.tier === currentMemory.tier ? 'the one before' : 'where you came from'}
        </button>`
      }
      ${faultNote(fault, refetch)} ${isLoading && !current && loadingNote('the lineage', 4)}
      ${
        current &&
        html`<div class="lineage">
          ${lineageLevel(
            'Covered by',
            above.length === 0
              ? currentMemory.tier === 3
                ? 'A high-level reflection is the top.'
                : 'Nothing yet: no reflection covers it.'
              : above.map(({ content, date, ...kin }) =>
                  lineageCard({ ...kin, text: content, at: date }, visit),
                ),
          )}
          <section class="lineage-here" aria-label="The memory itself">
            <div class="chips">
              ${tierChip(currentMemory.tier)} ${importanceChip(currentMemory.importance)}
            </div>
            <p class="memory-text">${currentMemory.text}</p>
            ${current.covers && html`<p class="quiet">About ${formatDateRange(current.covers)}</p>`}
          </section>
          ${
            currentMemory.tier > 1 &&
            lineageLevel(
              'Made from',
              sources.length === 0
                ? 'Its sources were deleted.'
                : sources.map(({ content, date, ...kin }) =>
                    lineageCard({ ...kin, text: content, at: date }, visit),
                  ),
              `${pluralize(current.sources_total, 'source')}${
                current.sources_deleted > 0
                  ? `, ${formatCount(current.sources_deleted)} deleted since`
                  : ''
              }${current.truncated ? '; the first 500 are shown' : ''}`,
            )
          }
        </div>`
      }
      ${!current && !isLoading && !fault && emptyNote('Nothing to show', 'The memory has no lineage.')}
    </div>`,
  })
}

const lineageLevel = (title: string, kin: View[] | string, words?: string): View =>
  html`<section class="lineage-level">
    <h3>${title}</h3>
    ${words && html`<p class="quiet">${words}</p>`}
    ${typeof kin === 'string' ? html`<p class="quiet">${kin}</p>` : list(kin)}
  </section>`

const list = (kin: Children[]): View =>
  html`<ul class="plain">
    ${kin.map((one, index) => html`<li key=${index}>${one}</li>`)}
  </ul>`

const lineageCard = (kin: LineageMemory, visit: (kin: LineageMemory) => void): View =>
  html`<button type="button" class="kin" onClick=${() => visit(kin)}>
    <span class="chips">${tierChip(kin.tier)} ${importanceChip(kin.importance)}</span>
    <span class="kin-text">${kin.text}</span>
    <span class="quiet">${formatDateTime(kin.at)}</span>
  </button>`
