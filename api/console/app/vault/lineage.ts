import { useState } from 'preact/hooks'
import { formatCount, formatDateRange, formatDateTime, pluralize } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import { button } from '#api/console/app/parts/buttons.ts'
import { importanceChip, tierChip } from '#api/console/app/parts/chips.ts'
import { dialog } from '#api/console/app/parts/dialogs.ts'
import { faultNote, loadingNote } from '#api/console/app/parts/notes.ts'
import { useCall } from '#api/console/app/queries.ts'
import type { DisplayedMemory } from '#api/console/app/vault/displayed-memory.ts'
import type { InspectAnswer } from '#api/contract/generated/types.ts'

type Kin = Pick<DisplayedMemory, 'id' | 'text' | 'tier' | 'at' | 'importance'>
type Visit = (kin: Kin) => void

/** The sources of a memory and the reflections made of it, each with its own lineage. */
export function Lineage({ memory, onClose }: { memory: Kin; onClose: () => void }): View {
  const [trail, setTrail] = useState([memory])
  const current = trail.at(-1)!
  const before = trail.at(-2)
  const { answer, fault, isLoading, refetch } = useCall('POST /v1/memory/inspect', {
    body: { memory_id: current.id },
  })
  const found = answer?.memory_id === current.id ? answer : undefined
  return dialog({
    title: 'Lineage',
    wide: true,
    onClose,
    children: html`${
      before &&
      button(
        `Back to ${before.tier === current.tier ? 'the one before' : 'where you came from'}`,
        () => setTrail(trail.slice(0, -1)),
      )
    }
    ${faultNote(fault, refetch)} ${isLoading && !found && loadingNote('the lineage')}
    ${found && lineageView(current, found, kin => setTrail([...trail, kin]))}`,
  })
}

function lineageView(memory: Kin, found: InspectAnswer, visit: Visit): View {
  const { consolidated_into: above, sources, covers } = found
  const deleted =
    found.sources_deleted > 0 ? `, ${formatCount(found.sources_deleted)} deleted since` : ''
  const counts = `${pluralize(found.sources_total, 'source')}${deleted}${found.truncated ? '; the first 500 are shown' : ''}`
  return html`<div class="stack">
    ${above.length + sources.length > 0 && lineageDrawing(memory, above, sources)}
    ${lineageLevel('Covered by', above, visit, {
      empty:
        memory.tier === 3
          ? 'A high-level reflection is the top.'
          : 'Nothing yet: no reflection covers it.',
    })}
    <section class="lineage-here stack-tight" aria-label="The memory itself">
      <div class="chips">${tierChip(memory.tier)} ${importanceChip(memory.importance)}</div>
      <p class="memory-text">${memory.text}</p>
      ${covers && html`<p class="quiet">About ${formatDateRange(covers)}</p>`}
    </section>
    ${memory.tier > 1 && lineageLevel('Made from', sources, visit, { empty: 'Its sources were deleted.', counts })}
  </div>`
}

/** Memories of one level that are drawn. */
const drawnMax = 24
const levelHeight = 36

/** The memory between what covers it and what it was made from, as dots in the colours of their tiers. */
function lineageDrawing(
  memory: Kin,
  above: readonly Pick<Kin, 'tier'>[],
  sources: readonly Pick<Kin, 'tier'>[],
): View {
  const levels = [above, [memory], sources].map(kin => kin.slice(0, drawnMax))
  const drawn = levels.filter(kin => kin.length > 0)
  const width = 480
  const own = drawn.findIndex(([first]) => first === memory)
  const yOf = (level: number): number => levelHeight * level + 12
  const dots = drawn.flatMap((kin, level) =>
    kin.map(({ tier }, index) => ({ tier, level, x: ((index + 0.5) * width) / kin.length })),
  )
  const words = `${pluralize(above.length, 'reflection')} above it, ${pluralize(sources.length, 'source')} below it`
  return html`<svg
    class="lineage"
    viewBox=${`0 0 ${width} ${yOf(drawn.length - 1) + 12}`}
    role="img"
    aria-label=${words}
  >
    ${dots
      .filter(({ level }) => level !== own)
      .map(
        ({ x, level }) => html`<line x1=${x} y1=${yOf(level)} x2=${width / 2} y2=${yOf(own)} />`,
      )}
    ${dots.map(
      ({ tier, x, level }) =>
        html`<circle
          class=${`tier-${tier}`}
          cx=${x}
          cy=${yOf(level)}
          r=${level === own ? 8 : 5}
        />`,
    )}
  </svg>`
}

type FoundKin = Omit<Kin, 'text' | 'at'> & { content: string; date: string }

const lineageLevel = (
  title: string,
  kin: readonly FoundKin[],
  visit: Visit,
  { empty, counts }: { empty: string; counts?: string },
): View =>
  html`<section class="stack-tight">
    <h3>${title}</h3>
    ${counts && html`<p class="quiet">${counts}</p>`}
    ${
      kin.length === 0
        ? html`<p class="quiet">${empty}</p>`
        : html`<ul class="plain">
            ${kin.map(({ content: text, date: at, ...one }) => html`<li key=${one.id}>${kinButton({ ...one, text, at }, visit)}</li>`)}
          </ul>`
    }
  </section>`

const kinButton = (kin: Kin, visit: Visit): View =>
  html`<button type="button" class="kin stack-close" onClick=${() => visit(kin)}>
    <span class="chips">${tierChip(kin.tier)} ${importanceChip(kin.importance)}</span>
    <span>${kin.text}</span>
    <span class="quiet">${formatDateTime(kin.at)}</span>
  </button>`
