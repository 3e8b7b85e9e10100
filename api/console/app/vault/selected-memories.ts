import { call, UserError } from '#api/console/app/api-call.ts'
import { pluralize } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { copyButton } from '#api/console/app/parts/buttons.ts'
import { confirmButton } from '#api/console/app/parts/dialogs.ts'
import { selectionBar, type Selection } from '#api/console/app/parts/selection.ts'
import { showToast } from '#api/console/app/toasts.ts'
import { useVaultUser } from '#api/console/app/vault-user.ts'
import type { DisplayedMemory } from '#api/console/app/vault/displayed-memory.ts'
import words from '#api/console/app/vault/words.json' with { type: 'json' }

type Props = {
  selection: Selection
  /** Those that are displayed. */
  memories: readonly DisplayedMemory[]
  onDeleted: (ids: ReadonlySet<string>) => void
}

/** What can be done with the chosen memories. Without a choice there is no bar. */
export const selectedMemoriesBar = (props: Props): View =>
  renderComponent(SelectedMemoriesBar, props)

function SelectedMemoriesBar({ selection, memories, onDeleted }: Props): View | false {
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
  const count = pluralize(chosen.length, 'memory', 'memories')
  return selectionBar(selection, {
    chosen: chosen.length === 0 ? '' : count,
    label: 'Selected memories',
    actions: html`${copyButton('Copy ids', ids.join('\n'))}
    ${confirmButton('Delete selected', {
      kind: 'danger',
      title: `Delete ${count}?`,
      message: html`<p>
        ${countByTier(chosen)} will be removed from both stores at once. They cannot be brought
        back.
      </p>`,
      verb: 'Delete',
      act: remove,
    })}`,
  })
}

/** `2 raw memories and 1 reflection`. */
const countByTier = (memories: readonly DisplayedMemory[]): string =>
  new Intl.ListFormat('en').format(
    Object.entries(words.tier_counts).flatMap(([tier, [one, many]]) => {
      const { length } = memories.filter(memory => memory.tier === Number(tier))
      return length === 0 ? [] : pluralize(length, one!, many)
    }),
  )
