import { useState } from 'preact/hooks'
import { call, UserError } from '#api/console/app/api-call.ts'
import { pluralize } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { button, copyButton } from '#api/console/app/parts/buttons.ts'
import { confirmButton } from '#api/console/app/parts/dialogs.ts'
import { showToast } from '#api/console/app/toasts.ts'
import { useVaultUser } from '#api/console/app/vault-user.ts'
import type { DisplayedMemory } from '#api/console/app/vault/displayed-memory.ts'

/** The memories of a page that the user has chosen, by id. */
export type Selection = { ids: ReadonlySet<string>; set: (ids: ReadonlySet<string>) => void }

/** The service deletes this many with one request. */
const selectedMax = 500

export function useSelection(): Selection {
  const [ids, set] = useState<ReadonlySet<string>>(new Set())
  return { ids, set }
}

export const selectBox = ({ ids, set }: Selection, id: string, excerpt: string): View =>
  html`<input
    type="checkbox"
    class="select-box"
    aria-label=${`Select: ${excerpt}`}
    checked=${ids.has(id)}
    disabled=${!ids.has(id) && ids.size >= selectedMax}
    onChange=${() => set(ids.symmetricDifference(new Set([id])))}
  />`

type Props = {
  selection: Selection
  /** Those that are displayed. */
  memories: readonly DisplayedMemory[]
  onDeleted: (ids: ReadonlySet<string>) => void
}

/** What can be done with the chosen memories. Without a choice there is no bar. */
export const selectionBar = (props: Props): View => renderComponent(SelectionBar, props)

function SelectionBar({ selection, memories, onDeleted }: Props): View | null {
  const user = useVaultUser()
  const chosen = memories.filter(({ id }) => selection.ids.has(id))
  const ids = chosen.map(({ id }) => id)
  const remove = async (): Promise<void> => {
    const answer = await call('POST /v1/memory/delete-ids', { body: { ids } }, undefined, user)
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
  return html`<div class="selection section-head" role="region" aria-label="Selected memories">
    <b role="status">${pluralize(chosen.length, 'memory', 'memories')} selected</b>
    <div class="actions">
      ${copyButton('Copy ids', ids.join('\n'))}
      ${button('Unselect all', () => selection.set(new Set()))}
      ${confirmButton('Delete selected', {
        kind: 'danger',
        title: `Delete ${pluralize(chosen.length, 'memory', 'memories')}?`,
        message: html`<p>
          ${countByTier(chosen)} will be removed from both stores at once. They cannot be brought
          back.
        </p>`,
        verb: 'Delete',
        act: remove,
      })}
    </div>
  </div>`
}

const tierNames = [
  [1, 'raw memory', 'raw memories'],
  [2, 'reflection', 'reflections'],
  [3, 'high-level reflection', 'high-level reflections'],
] as const

/** `2 raw memories and 1 reflection`. */
const countByTier = (memories: readonly DisplayedMemory[]): string =>
  new Intl.ListFormat('en').format(
    tierNames.flatMap(([tier, one, many]) => {
      const { length } = memories.filter(memory => memory.tier === tier)
      return length === 0 ? [] : pluralize(length, one, many)
    }),
  )
