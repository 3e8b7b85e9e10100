import { call } from '#api/console/app/api-call.ts'
import { useBulk, type Outcomes } from '#api/console/app/bulk.ts'
import { pluralize } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import { retagButton, type TagChange } from '#api/console/app/org/retag.ts'
import { confirmButton } from '#api/console/app/parts/dialogs.ts'
import { selectionBar, type Selection } from '#api/console/app/parts/selection.ts'
import { showToast } from '#api/console/app/toasts.ts'
import type { SharedMemory } from '#api/contract/generated/types.ts'

type Props = {
  org: string
  selection: Selection
  /** Those that are displayed. */
  memories: readonly SharedMemory[]
  /** After a change, with those that were changed. */
  onChanged: (memories: readonly SharedMemory[]) => void
  onDeleted: (ids: ReadonlySet<string>) => void
  /** After a deletion was taken back. */
  onRestored: () => void
}

const countOf = ({ length }: readonly unknown[]): string => pluralize(length, 'memory', 'memories')

/**
 * What can be done with the chosen shared memories.
 *
 * @returns the bar, and the progress and failures of what it does
 */
export function useSelectedShared(props: Props): { bar: View | false; progress: View } {
  const { org, selection, memories } = props
  const bulk = useBulk<SharedMemory>(({ text }) => `“${text.slice(0, 60)}”`)
  const chosen = memories.filter(({ mem_id }) => selection.ids.has(mem_id))
  const toParams = ({ mem_id: memId }: SharedMemory) => ({ orgId: org, memId })
  const paths = {
    one: '/v1/orgs/:orgId/memories/:memId',
    restore: '/v1/orgs/:orgId/memories/:memId/restore',
  } as const

  const setTags = (items: readonly SharedMemory[], tagsOf: (memory: SharedMemory) => string[]) => ({
    items,
    act: (memory: SharedMemory) =>
      call(`PATCH ${paths.one}`, { params: toParams(memory), body: { tags: tagsOf(memory) } }),
  })
  const retag = (retagged: TagChange): void => {
    const onDone = ({ before, after }: ReturnType<typeof split>): void => {
      props.onChanged(after)
      selection.set(new Set())
      showToast(`Retagged: ${countOf(after)}.`, () => {
        const formerTags = setTags(before, ({ tags }) => tags)
        void bulk.run({ ...formerTags, onDone: done => props.onChanged(split(done).after) })
      })
    }
    const change = setTags(chosen, ({ tags }) => retagged(tags))
    void bulk.run({ ...change, onDone: done => onDone(split(done)) })
  }

  const remove = (): void => {
    const onDone = (done: Outcomes<SharedMemory, unknown>['done']): void => {
      const gone = done.map(([memory]) => memory)
      props.onDeleted(new Set(gone.map(({ mem_id }) => mem_id)))
      selection.set(new Set())
      showToast(`Deleted: ${countOf(gone)}.`, () => {
        const act = (memory: SharedMemory) =>
          call(`POST ${paths.restore}`, { params: toParams(memory), body: {} })
        void bulk.run({ items: gone, act, onDone: props.onRestored })
      })
    }
    const act = (memory: SharedMemory) => call(`DELETE ${paths.one}`, { params: toParams(memory) })
    void bulk.run({ items: chosen, act, onDone })
  }

  const bar = selectionBar(selection, {
    chosen: chosen.length === 0 ? '' : countOf(chosen),
    label: 'Selected memories',
    actions: html`${retagButton({
      org,
      chosen: chosen.map(({ tags }) => tags),
      approves: 'never',
      onRetag: retag,
    })}
    ${confirmButton('Delete selected', {
      kind: 'danger',
      title: `Delete ${countOf(chosen)}?`,
      message: 'Members no longer see them. For 30 days the audit can bring each back.',
      verb: 'Delete',
      act: async () => remove(),
    })}`,
  })
  return { bar, progress: bulk.view }
}

/** The memories before and after a change. */
const split = (done: Outcomes<SharedMemory, SharedMemory>['done']) => ({
  before: done.map(([before]) => before),
  after: done.map(([, after]) => after),
})
