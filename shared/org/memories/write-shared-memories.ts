import { Refusal } from '#shared/core/errors.ts'
import { mapInSlices } from '#shared/core/event-loop.ts'
import { copyIdOf, memoryIdOf } from '#shared/core/ids.ts'
import type { OrgVault } from '#shared/domain/job-payloads.ts'
import { toSnapshot } from '#shared/org/memories/finalize-shared-writes.ts'
import { readHistory } from '#shared/org/memories/restore-shared-memory.ts'
import {
  carryOutWrites,
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
  /** One for each that was stored, with its index in the input. */
  added: { index: number; memory: SharedMemory }[]
  /** Those without words, those that could not be embedded, and those that the policy blocks. */
  failed: { index: number; error: Refusal }[]
}

/**
 * Adds shared memories, each with its audit event `create`. The id of each is
 * `memoryIdOf(operation, index)`. A second run stores and records nothing twice, wherever the first one
 * ended; memories that were removed since stay removed.
 *
 * @throws Refusal `unavailable` when a store is out of reach; when no text can be stored, the refusal of the
 *   first: `upstream`, or `invalid` where it has no words or the policy blocks it.
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

/** The new fields of a memory; what is left out stays. */
export type SharedMemoryChange = {
  id: string
  text?: string
  tags?: readonly string[]
  confidence?: number
  reviewed?: boolean
  /** The text is an admin's: no member's turn replaces it without a review. */
  byHand?: boolean
  /** Of a text that a member said: it gets their name and the time. */
  statement?: Statement
  /** The version that the client has read: any other is refused with `conflict`. */
  ifVersion?: number
  kind?: WriteKind
}

/**
 * Changes a shared memory: a new text is embedded first, and nothing is changed when that fails. The
 * audit records `update` for a new text, confidence or review state, and `retag` for new tags; an empty
 * change leaves no event. A second run under the same operation changes nothing more.
 *
 * @returns the memory as it is now.
 * @throws Refusal `missing` when there is no such memory; `conflict` when it is not at `ifVersion`, or
 *   others keep changing it; `invalid` for a text without words, or one that the policy blocks;
 *   `upstream` when the embedding model does not answer; `unavailable` when a store is out of reach.
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
      const waits = pending && !reviewed && !byHand
      return { ...snapshot, text, tags, ...opinion, ...attribution, ...(waits && { pending }) }
    },
  )
  if (!changed) throw noSuchSharedMemory()
  return changed
}

/**
 * Removes a shared memory: when this resolves no member sees it, and its id stays taken. The audit records
 * `delete`. A second run under the same operation does nothing more.
 *
 * @throws Refusal `missing` when there is no such memory; `conflict`, `unavailable` as `updateShared`.
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

/** Words of a member, and when they were said in epoch milliseconds. */
export type Statement = { author: string; saidAt: number }

type Attribution = Pick<SharedMemory, 'author' | 'acquiredAt' | 'origin'>

/** The author and time of new words, beside those of the first. */
export function attributeTo(
  { author, acquiredAt, origin }: Attribution,
  statement: Statement,
): Attribution {
  const first = origin ?? { author, acquiredAt, contributors: [author] }
  const contributors = [...new Set([...first.contributors, statement.author])]
  const { author: sayer, saidAt } = statement
  return { author: sayer, acquiredAt: saidAt, origin: { ...first, contributors } }
}

/**
 * Removes a shared memory with its words: it cannot be restored. Of one that was removed before the words
 * go. Cut short between the two, it is removed, and the same request again ends it.
 *
 * @throws Refusal as `deleteSharedMemory`; `missing` also when no words are left.
 */
export async function deleteSharedMemoryForGood(
  backend: SharedMemoryBackend,
  orgVault: OrgVault,
  removal: ChangeOrigin & { id: string },
): Promise<void> {
  const { org } = orgVault
  try {
    await deleteSharedMemory(backend, orgVault, removal)
  } catch (error) {
    if (!(error instanceof Refusal && error.reason === 'missing')) throw error
    await readHistory(backend, orgVault, removal.id)
  }
  await backend.postgres.transaction(tx => forgetMemory(tx, org, removal.id))
}
