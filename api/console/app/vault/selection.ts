import { useState } from 'preact/hooks'
import { call, UserError } from '#api/console/app/api-call.ts'
import { pluralize } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import { confirmDialog } from '#api/console/app/parts/confirm.ts'
import { copyButton } from '#api/console/app/parts/copy-button.ts'
import { showToast } from '#api/console/app/toasts.ts'
import type { DisplayedMemory } from '#api/console/app/vault/displayed-memory.ts'

/** The memories of a page that the user has chosen, by id. */
export type Selection = { ids: ReadonlySet<string>; set: (ids: ReadonlySet<string>) => void }

/** The service deletes this many with one request. */
const selectedMax = 500

export function useSelection(): Selection {
  const [ids, set] = useState<ReadonlySet<string>>(new Set())
  return { ids, set }
}

/** The checkbox of a memory. */
export const selectBox = ({ ids, set }: Selection, id: string, excerpt: string): View =>
  html`<input
    type="checkbox"
    class="select-box"
    aria-label=${`Select: ${excerpt}`}
    checked=${ids.has(id)}
    disabled=${!ids.has(id) && ids.size >= selectedMax}
    onChange=${() => set(ids.has(id) ? ids.difference(new Set([id])) : ids.union(new Set([id])))}
  />`

type Props = {
  selection: Selection
  /** Those that are displayed. */
  memories: readonly DisplayedMemory[]
  onDeleted: (ids: ReadonlySet<string>) => void
}

/** What can be done with the chosen memories; not there while none is chosen. */
export function SelectionBar({ selection, memories, onDeleted }: Props): View | null {
  const [asking, setAsking] = useState(false)
  const chosen = memories.filter(({ id }) => selection.ids.has(id))
  const remove = async (): Promise<void> => {
    const ids = chosen.map(({ id }) => id)
    const answer = await call('POST /v1/memory/delete-ids', { body: { ids } })
    const failed = new Set('failed' in answer ? answer.failed : [])
    const gone = new Set(ids).difference(failed)
    selection.set(failed)
    onDeleted(gone)
    if (failed.size > 0) {
      throw new UserError(
        `${pluralize(failed.size, 'memory', 'memories')} could not be deleted now`,
      )
    }
    showToast(`${pluralize(gone.size, 'memory is', 'memories are')} deleted.`)
  }
  if (chosen.length === 0) return null
  return html`<div class="selection" role="region" aria-label="Selected memories">
    <b role="status">${pluralize(chosen.length, 'memory', 'memories')} selected</b>
    <div class="actions">
      ${copyButton({ label: 'Copy ids', text: chosen.map(({ id }) => id).join('\n') })}
      <button type="button" class="button" onClick=${() => selection.set(new Set())}>
        Select none
      </button>
      <button type="button" class="button button-danger" onClick=${() => setAsking(true)}>
        Delete selected
      </button>
    </div>
    ${
      asking &&
      confirmDialog({
        title: `Delete ${pluralize(chosen.length, 'memory', 'memories')}?`,
        message: html`<p>
          ${countByTier(chosen)} will be removed from both stores at once. They cannot be brought
          back.
        </p>`,
        verb: 'Delete',
        action: remove,
        onClose: () => setAsking(false),
      })
    }
  </div>`
}

const tierNames = [
  [1, 'raw memory', 'raw memories'],
  [2, 'reflection', 'reflections'],
  [3, 'high-level reflection', 'high-level reflections'],
] as const

/** `2 raw memories and 1 reflection`. */
function countByTier(memories: readonly DisplayedMemory[]): string {
  const counts = tierNames
    .map(([tier, one, many]) => ({
      count: memories.filter(memory => memory.tier === tier).length,
      one,
      many,
    }))
    .filter(({ count }) => count > 0)
    .map(({ count, one, many }) => pluralize(count, one, many))
  return new Intl.ListFormat('en').format(counts)
}
