import { Refusal } from '#shared/core/errors.ts'
import { copyIdOf, memoryIdOf } from '#shared/core/ids.ts'
import type { SharedMemory } from '#shared/org/memories/shared-memories.mongo.ts'
import { insertShared } from '#shared/org/memories/shared-writes.mongo.ts'
import {
  mutateSharedMemory,
  noSuchSharedMemory,
  type ChangeOrigin,
  type SharedMemoryBackend,
} from '#shared/org/memories/shared-change.ts'
import { openOrgEmbedders, undefinedIfUnavailable } from '#shared/vault/base/shared-embedders.ts'
import { finalizeWrites, toSnapshot } from '#shared/org/memories/finalize-shared-writes.ts'
import {
  findSharedWrites,
  recordWriteIntents,
  type WriteIntent,
  type WriteKind,
} from '#shared/org/memories/shared-writes.postgres.ts'
import type { RedactionPolicy } from '#shared/privacy/apply-redaction.ts'
import { mapInSlices } from '#shared/core/event-loop.ts'
import { countTokensInSlices } from '#shared/core/tokens.ts'
import type { Metadata } from '#shared/domain/metadata.ts'
import type { OrgVault } from '#shared/domain/job-payloads.ts'
import { sortUniqueTags } from '#shared/domain/tags.ts'
import { activeOrgRedaction, redactContent } from '#shared/org/base/redaction.ts'
import { forgetMemory } from '#shared/org/memories/shared-statements.postgres.ts'
import { readHistory } from '#shared/org/memories/restore-shared-memory.ts'

export type NewSharedMemory = {
  text: string
  tags: readonly string[]
  /** Of the tags, 0 to 1. */
  confidence: number
  author: string
  reviewed: boolean
  /** No member sees it before a person has decided about it. */
  pending?: boolean
  /** When it was said, epoch milliseconds. */
  acquiredAt: number
  metadata?: Metadata
}

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
 * @throws Refusal `unavailable` when a store is out of reach; when not a single text can be stored, why
 *   the first cannot: `upstream`, or `invalid` where it has no words or the policy blocks it.
 */
export async function addSharedMemories(
  backend: SharedMemoryBackend,
  orgVault: OrgVault,
  { operation, actor, items }: ChangeOrigin & { items: readonly NewSharedMemory[] },
): Promise<AddResult> {
  const prepared = await mapInSlices(items, prepareMemory(operation))
  const marks = prepared.map(({ mark }) => mark)
  const earlierWrites = await findSharedWrites(backend.postgres.query, marks)
  const redaction = await activeOrgRedaction(backend.postgres.query, orgVault.org)
  const undone = prepared.filter(({ mark }) => earlierWrites.get(mark)?.state !== 'done')
  const { allowed, blocked } = await redactAll(redaction, undone)
  const { ready, failed: unembedded } = await embedAll(backend, orgVault.org, allowed)
  const failed = [...blocked, ...unembedded].toSorted((a, b) => a.index - b.index)
  if (failed.length > 0 && failed.length === prepared.length) throw failed[0]!.error
  if (ready.length > 0) await storeMemories(backend, orgVault, { actor, ready })

  const updatedAt = backend.now()
  const refused = new Set(failed.map(({ index }) => index))
  const texts = new Map(allowed.map(item => [item.index, item]))
  const added = prepared
    .filter(({ index }) => !refused.has(index))
    .map(item => texts.get(item.index) ?? item)
    .map(({ index, content }) => ({ index, memory: { ...content, updatedAt, version: 1 } }))
  return { added, failed }
}

type PreparedMemory = {
  index: number
  /** The write that adds it. */
  mark: string
  content: NewSharedMemory & { id: string; tokens: number }
}

const prepareMemory =
  (operation: string) =>
  async (item: NewSharedMemory, index: number): Promise<PreparedMemory> => {
    const id = memoryIdOf(operation, index)
    const tokens = await countTokensInSlices(item.text)
    const content = { ...item, id, tags: sortUniqueTags(item.tags), tokens }
    return { index, mark: copyIdOf(operation, index, id), content }
  }

/** Redacts a text before it is embedded, and its metadata, or refuses them. */
async function redactAll(
  redaction: RedactionPolicy | null,
  given: readonly PreparedMemory[],
): Promise<{ allowed: PreparedMemory[]; blocked: AddResult['failed'] }> {
  const allowed: PreparedMemory[] = []
  const blocked: AddResult['failed'] = []
  await mapInSlices(given, async item => {
    try {
      if (item.content.text.trim() === '') throw new Refusal('invalid', 'text holds no words')
      allowed.push({ ...item, content: await redactContent(redaction, item.content) })
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      blocked.push({ index: item.index, error })
    }
  })
  return { allowed, blocked }
}

type MemoryWithVectors = PreparedMemory & { vectors: Record<string, Float32Array> }

async function embedAll(
  backend: SharedMemoryBackend,
  org: string,
  given: readonly PreparedMemory[],
): Promise<{ ready: MemoryWithVectors[]; failed: AddResult['failed'] }> {
  const [embedder, ...former] = await openOrgEmbedders(backend, org)
  const texts = given.map(({ content }) => content.text)
  const outcomes = await embedder.embedEach(texts)
  const others = await Promise.all(former.map(one => undefinedIfUnavailable(one.embedEach(texts))))
  const ready: MemoryWithVectors[] = []
  const failed: AddResult['failed'] = []
  for (const [i, item] of given.entries()) {
    const outcome = outcomes[i]!
    if (outcome instanceof Refusal) failed.push({ index: item.index, error: outcome })
    else {
      const vectors = { [embedder.space]: outcome }
      for (const [n, { space }] of former.entries()) {
        const vector = others[n]?.[i]
        if (vector instanceof Float32Array) vectors[space] = vector
      }
      ready.push({ ...item, vectors })
    }
  }
  return { ready, failed }
}

async function storeMemories(
  backend: SharedMemoryBackend,
  { org, vault, epoch }: OrgVault,
  { actor, ready }: { actor: string; ready: readonly MemoryWithVectors[] },
): Promise<void> {
  const orgVault = { org, vault, epoch }
  const intents = ready.map(({ mark, content }): WriteIntent => {
    const what = { kind: 'add', actor, actions: ['create'] } as const
    const after = toSnapshot(content)
    return { id: mark, ...orgVault, ...what, memory: content.id, before: null, after }
  })
  const documents = ready.map(({ mark, content, vectors }) => ({
    mark,
    content: { ...content, vectors },
  }))
  await recordWriteIntents(backend.postgres.query, intents)
  await insertShared(backend.mongo, orgVault, documents)
  await finalizeWrites(backend, orgVault, intents)
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
  if (wanted.text?.trim() === '') throw new Refusal('invalid', 'text holds no words')
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

/** Replaces all tags of a shared memory. As `updateShared`. */
export const retagSharedMemory = (
  backend: SharedMemoryBackend,
  orgVault: OrgVault,
  change: ChangeOrigin & { id: string; tags: readonly string[] },
): Promise<SharedMemory> => updateSharedMemory(backend, orgVault, change)

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
