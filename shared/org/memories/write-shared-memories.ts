import { Refusal } from '#shared/core/errors.ts'
import { mapInSlices } from '#shared/core/event-loop.ts'
import { copyIdOf, memoryIdOf } from '#shared/core/ids.ts'
import type { OrgVault } from '#shared/domain/job-payloads.ts'
import { toSnapshot } from '#shared/org/memories/finalize-shared-writes.ts'
import { readHistory } from '#shared/org/memories/restore-shared-memory.ts'
import {
  carryOutWrites,
  ignoreMissing,
  mutateSharedMemory,
  noSuchSharedMemory,
  prepareWrites,
  type ChangeOrigin,
  type SharedMemoryBackend,
} from '#shared/org/memories/shared-change.ts'
import type { SharedMemory } from '#shared/org/memories/shared-memories.mongo.ts'
import { forgetMemory } from '#shared/org/memories/shared-statements.postgres.ts'
import {
  findSharedWrites,
  type MemorySnapshot,
  type WriteKind,
} from '#shared/org/memories/shared-writes.postgres.ts'

export type NewSharedMemory = Omit<
  MemorySnapshot,
  'tokens' | 'byHand' | 'origin' | 'confirmedAt' | 'replaced'
>

export type AddResult = {
  /** With the index in the input. */
  added: { index: number; memory: SharedMemory }[]
  /** Without words, not embeddable, or blocked by the policy. */
  failed: { index: number; error: Refusal }[]
}

/**
 * Adds shared memories, each with the id `memoryIdOf(operation, index)` and an audit event `create`. A second run
 * stores and records nothing twice; memories that were removed since stay removed.
 *
 * @throws Refusal `unavailable` when a store is out of reach; the refusal of the first text when none can be
 *   stored.
 */
export async function addSharedMemories(
  backend: SharedMemoryBackend,
  orgVault: OrgVault,
  { operation, actor, items }: ChangeOrigin & { items: readonly NewSharedMemory[] },
): Promise<AddResult> {
  const drafts = await mapInSlices(items, (item, index) => {
    const memory = memoryIdOf(operation, index)
    const write = copyIdOf(operation, index, memory)
    return { index, write, memory, current: null, content: { ...item, tokens: 0 } }
  })
  const ids = drafts.map(({ write }) => write)
  const earlier = await findSharedWrites(backend.postgres.query, ids)
  const open = drafts.filter(({ write }) => earlier.get(write)?.state !== 'done')
  const prepared = await prepareWrites(backend, orgVault, { actor, kind: 'add' }, open)
  const failed = prepared.flatMap((error, at) =>
    error instanceof Refusal ? [{ index: open[at]!.index, error }] : [],
  )
  if (failed.length > 0 && failed.length === items.length) throw failed[0]!.error
  const ready = prepared.flatMap(one => (one instanceof Refusal ? [] : [one]))
  if (ready.length > 0) await carryOutWrites(backend, orgVault, ready)

  const updatedAt = backend.now()
  const refused = new Set(failed.map(({ index }) => index))
  const stored = new Map(ready.map(({ intent }) => [intent.id, intent.after]))
  const added = drafts
    .filter(({ index }) => !refused.has(index))
    .map(({ index, write, memory: id, content }) => {
      const after = stored.get(write) ?? earlier.get(write)?.after
      return { index, memory: { ...content, ...after, id, updatedAt, version: 1 } }
    })
  return { added, failed }
}

/** The new fields of a memory; fields left out stay. */
export type SharedMemoryChange = {
  id: string
  text?: string
  tags?: readonly string[]
  confidence?: number
  reviewed?: boolean
  /** The text is an admin's: a member's turn replaces it only after a review. */
  byHand?: boolean
  /** Who said the text, and when. */
  statement?: { author: string; saidAt: number }
  /** Any other version is refused with `conflict`. */
  ifVersion?: number
  kind?: WriteKind
}

/**
 * Changes a shared memory. A new text is embedded first. The audit records `update` for a new text, confidence or
 * review state, and `retag` for new tags. A second run under the same operation changes nothing more.
 *
 * @throws Refusal `missing` when there is no such memory; `conflict` when it is not at `ifVersion`; otherwise as
 *   `mutateSharedMemory`.
 */
export async function updateSharedMemory(
  backend: SharedMemoryBackend,
  orgVault: OrgVault,
  { operation, actor, id, ifVersion, kind = 'edit', ...wanted }: ChangeOrigin & SharedMemoryChange,
): Promise<SharedMemory> {
  const changed = await mutateSharedMemory(
    backend,
    orgVault,
    { operation, actor, id, kind },
    ({ memory }) => {
      if (!memory) throw noSuchSharedMemory()
      if (ifVersion !== undefined && memory.version !== ifVersion) {
        throw new Refusal('conflict', 'This memory has been changed since', 'Read it again')
      }
      const { text = memory.text, confidence = memory.confidence } = wanted
      const { reviewed = memory.reviewed, tags = memory.tags } = wanted
      const { byHand = false, statement } = wanted
      const opinion = { confidence, reviewed, ...(byHand && { byHand }) }
      const attribution = statement && attributeTo(memory, statement)
      const { pending, ...snapshot } = toSnapshot(memory)
      // Words of an admin are seen at once, unless the admin says that they wait.
      const waits = pending && !reviewed && (!byHand || wanted.reviewed === false)
      return { ...snapshot, text, tags, ...opinion, ...attribution, ...(waits && { pending }) }
    },
  )
  if (!changed) throw noSuchSharedMemory()
  return changed
}

/**
 * Removes a shared memory: when this resolves no member sees it, and its id stays taken. A second run under the
 * same operation does nothing more.
 *
 * @throws Refusal `missing` when there is no such memory; otherwise as `mutateSharedMemory`.
 */
export async function deleteSharedMemory(
  backend: SharedMemoryBackend,
  orgVault: OrgVault,
  { operation, actor, id }: ChangeOrigin & { id: string },
): Promise<void> {
  const change = { operation, actor, id, kind: 'delete' } as const
  await mutateSharedMemory(backend, orgVault, change, ({ memory }) => {
    if (!memory) throw noSuchSharedMemory()
    return null
  })
}

/** Makes a statement the last of a memory and keeps the first. */
export function attributeTo(
  { author, acquiredAt, origin }: Pick<SharedMemory, 'author' | 'acquiredAt' | 'origin'>,
  statement: { author: string; saidAt: number },
): Pick<SharedMemory, 'author' | 'acquiredAt' | 'origin'> {
  const first = origin ?? { author, acquiredAt, contributors: [author] }
  const contributors = [...new Set([...first.contributors, statement.author])]
  const { author: sayer, saidAt } = statement
  return { author: sayer, acquiredAt: saidAt, origin: { ...first, contributors } }
}

/**
 * Removes a shared memory with its words, also one that was removed before; it cannot be restored. After an
 * interruption the same request completes it.
 *
 * @throws Refusal as `deleteSharedMemory`; `missing` also when no words are left.
 */
export async function deleteSharedMemoryForGood(
  backend: SharedMemoryBackend,
  orgVault: OrgVault,
  removal: ChangeOrigin & { id: string },
): Promise<void> {
  const { org } = orgVault
  await deleteSharedMemory(backend, orgVault, removal).catch(async (error: unknown) => {
    ignoreMissing(error)
    await readHistory(backend, orgVault, removal.id)
  })
  await backend.postgres.transaction(tx => forgetMemory(tx, org, removal.id))
}
