import { isDeepStrictEqual } from 'node:util'
import { Refusal } from '#shared/core/errors.ts'
import { emptyText, memoryContended, noSuchMemory } from '#shared/core/refusals.ts'
import { mapInSlices } from '#shared/core/event-loop.ts'
import { copyIdOf, isUuid } from '#shared/core/ids.ts'
import { countTokensInSlices } from '#shared/core/tokens.ts'
import { withMemorySpan } from '#shared/core/trace.ts'
import type { OrgVault } from '#shared/domain/job-payloads.ts'
import { sortUniqueTags, tagSetKey } from '#shared/domain/tags.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { OrgRow } from '#shared/org/base/orgs.postgres.ts'
import { activeOrgRedaction } from '#shared/org/base/redaction.ts'
import { finalizeWrites, toSnapshot } from '#shared/org/memories/finalize-shared-writes.ts'
import {
  findSharedMemoryState,
  type SharedMemory,
  type SharedMemoryState,
} from '#shared/org/memories/shared-memories.mongo.ts'
import {
  insertShared,
  relabelShared,
  replaceShared,
  tombstoneShared,
} from '#shared/org/memories/shared-writes.mongo.ts'
import {
  findSharedWrites,
  listPendingWrites,
  recordWriteIntents,
  type AuditAction,
  type MemorySnapshot,
  type WriteIntent,
  type WriteKind,
} from '#shared/org/memories/shared-writes.postgres.ts'
import {
  applyRedaction,
  redactMetadata,
  type RedactionPolicy,
} from '#shared/privacy/apply-redaction.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import { openOrgEmbedders, undefinedIfUnavailable } from '#shared/vault/base/shared-embedders.ts'

/*
 * Every change of a shared memory takes three steps: its intent is recorded in Postgres, the document is written in
 * MongoDB, the write is finalized in Postgres. The document gets the id of the write as a mark: from it the next
 * run, or the sweep, knows whether an interrupted write was applied.
 */

/** Who changes a memory, and under which operation: the same operation changes it once. */
export type ChangeOrigin = {
  /** The UUIDv7 of one change of one memory, or of one seeding. */
  operation: string
  /** An admin's email, or the `team_member_id` of a member. */
  actor: string
}

export type SharedMemoryBackend = Stores & {
  queue: Queue
  embedders: Embedders
  now: () => number
}

export const noSuchSharedMemory = (): Refusal =>
  noSuchMemory('GET /v1/orgs/:orgId/memories lists those of the organization')

/** Rethrows every other error than the refusal of a missing memory. */
export function ignoreMissing(error: unknown): undefined {
  if (!(error instanceof Refusal && error.reason === 'missing')) throw error
}

/** @throws Refusal `missing` for a malformed id; its case does not matter. */
export function parseSharedMemoryId(text = ''): string {
  if (isUuid(text)) return text.toLowerCase()
  throw noSuchSharedMemory()
}

export const toOrgVault = ({ id, vault, epoch }: OrgRow): OrgVault => ({ org: id, vault, epoch })

/** The id of the write that an operation makes of a memory. */
export const toWriteId = ({ operation, id }: { operation: string; id: string }): string =>
  copyIdOf(operation, 0, id)

/** A try fails only when another writer changes the memory between its read and its write. */
const triesMax = 8

/**
 * Changes one shared memory. The document is written only if it is as it was read, so that concurrent changes
 * follow one another.
 *
 * @param mutation returns the new content, or throws the refusal; called again when another change was faster
 * @returns the memory after the change; null when it was removed.
 * @throws Refusal `invalid` for a text without words, or one that the policy of the organization blocks; `conflict`
 *   when others keep changing it; `upstream` when the embedding model does not answer.
 */
export async function mutateSharedMemory(
  backend: SharedMemoryBackend,
  orgVault: OrgVault,
  { operation, actor, id, kind }: ChangeOrigin & { id: string; kind: WriteKind },
  mutation: (current: SharedMemoryState) => MemorySnapshot | null | Promise<MemorySnapshot | null>,
): Promise<SharedMemory | null> {
  const { mongo, postgres } = backend
  const write = toWriteId({ operation, id })
  for (let attempt = 0; attempt < triesMax; attempt++) {
    const earlierWrite = (await findSharedWrites(postgres.query, [write])).get(write)
    const current = await findSharedMemoryState(mongo, orgVault, id)
    if (earlierWrite?.state === 'done') return current?.memory ?? null
    if (!current) throw noSuchSharedMemory()
    if (earlierWrite && current.marks.includes(write)) {
      await finalizeWrites(backend, orgVault, [earlierWrite])
      return current.memory
    }
    await finalizeEarlierWrites(backend, orgVault, id, current)
    const draft = { write, memory: id, current, content: await mutation(current) }
    const [prepared] = await prepareWrites(backend, orgVault, { actor, kind }, [draft])
    if (prepared instanceof Refusal) throw prepared
    const { actions, after } = prepared!.intent
    if (actions.length === 0) return current.memory
    if (!(await carryOutWrites(backend, orgVault, [prepared!]))) continue
    return after && { ...after, id, updatedAt: backend.now(), version: current.version + 1 }
  }
  throw memoryContended()
}

/** Finalizes earlier writes that were applied, before the marks of later writes displace theirs. */
async function finalizeEarlierWrites(
  backend: SharedMemoryBackend,
  orgVault: OrgVault,
  id: string,
  { marks }: SharedMemoryState,
): Promise<void> {
  const pending = await listPendingWrites(backend.postgres.query, { org: orgVault.org, memory: id })
  const applied = pending.filter(write => marks.includes(write.id))
  if (applied.length > 0) await finalizeWrites(backend, orgVault, applied)
}

type Draft = {
  /** The id of the write, and of its memory. */
  write: string
  memory: string
  /** Null: the memory is new. */
  current: SharedMemoryState | null
  /** Null removes the memory; `tokens` of a new text are counted. */
  content: MemorySnapshot | null
}

type PreparedWrite = Pick<Draft, 'current'> & {
  intent: WriteIntent
  /** By vault space; null where the text stays. */
  vectors: Record<string, Float32Array> | null
}

/**
 * Redacts and embeds the new texts of writes.
 *
 * @returns for each draft, in order, its write, or why its text cannot be stored.
 * @throws Refusal `upstream` when the embedding model does not answer; `unavailable`.
 */
export async function prepareWrites(
  backend: SharedMemoryBackend,
  { org, vault, epoch }: OrgVault,
  by: { actor: string; kind: WriteKind },
  drafts: readonly Draft[],
): Promise<(PreparedWrite | Refusal)[]> {
  const hasNewText = ({ content, current }: Draft) =>
    content !== null && content.text !== current?.memory?.text
  const redaction = drafts.some(hasNewText)
    ? await activeOrgRedaction(backend.postgres.query, org)
    : null
  const intents = await mapInSlices(drafts, async ({ write, memory, current, content }) => {
    const before = current?.memory ? toSnapshot(current.memory) : null
    const after = content && (await toStorable(redaction, content, before))
    if (after instanceof Refusal) return after
    const actions = toAuditActions(before, after, by.kind)
    return { id: write, org, vault, epoch, memory, ...by, actions, before, after }
  })
  const texts = intents.flatMap((intent, index) =>
    intent instanceof Refusal || !hasNewText(drafts[index]!) ? [] : [intent.after!.text],
  )
  const embedded = (await embedTexts(backend, org, texts)).values()
  return intents.map((intent, index) => {
    if (intent instanceof Refusal) return intent
    const vectors = hasNewText(drafts[index]!) ? embedded.next().value! : null
    return vectors instanceof Refusal
      ? vectors
      : { intent, current: drafts[index]!.current, vectors }
  })
}

/** The content with a new text, and metadata of a new memory, as the policy lets them be stored. */
async function toStorable(
  redaction: RedactionPolicy | null,
  content: MemorySnapshot,
  before: MemorySnapshot | null,
): Promise<MemorySnapshot | Refusal> {
  const tags = sortUniqueTags(content.tags)
  if (content.text === before?.text) return { ...content, tags }
  try {
    if (content.text.trim() === '') throw emptyText()
    const text = applyRedaction(redaction, content.text, 'text')
    const metadata = before ? content.metadata : redactMetadata(redaction, content.metadata)
    const tokens = await countTokensInSlices(text)
    return { ...content, tags, text, tokens, ...(metadata && { metadata }) }
  } catch (error) {
    if (error instanceof Refusal) return error
    throw error
  }
}

/** The vectors of each text by vault space, or why the model has none. */
async function embedTexts(
  backend: SharedMemoryBackend,
  org: string,
  texts: readonly string[],
): Promise<(Record<string, Float32Array> | Refusal)[]> {
  if (texts.length === 0) return []
  const [embedder, ...former] = await openOrgEmbedders(backend, org)
  const outcomes = await embedder.embedEach(texts)
  const others = await Promise.all(former.map(one => undefinedIfUnavailable(one.embedEach(texts))))
  return outcomes.map((outcome, index) => {
    if (outcome instanceof Refusal) return outcome
    const vectors = { [embedder.space]: outcome }
    for (const [n, { space }] of former.entries()) {
      const vector = others[n]?.[index]
      if (vector instanceof Float32Array) vectors[space] = vector
    }
    return vectors
  })
}

/**
 * Records writes, applies them to their documents and finalizes them.
 *
 * @returns whether all were applied: false when a write is done already or its document has changed.
 */
export const carryOutWrites = (
  backend: SharedMemoryBackend,
  orgVault: OrgVault,
  writes: readonly PreparedWrite[],
): Promise<boolean> =>
  withMemorySpan(
    toSpanOperation(writes),
    { vault: orgVault.vault, ids: () => writes.map(({ intent }) => intent.memory) },
    () => applyWrites(backend, orgVault, writes),
  )

/** Writes of one call are of one kind; of a mixture the conventions have a word of its own. */
function toSpanOperation(writes: readonly PreparedWrite[]) {
  const kinds = new Set(
    writes.map(({ current, intent }) =>
      !intent.after ? 'delete_memory' : current ? 'update_memory' : 'create_memory',
    ),
  )
  return kinds.size === 1 ? [...kinds][0]! : 'upsert_memory'
}

async function applyWrites(
  backend: SharedMemoryBackend,
  orgVault: OrgVault,
  writes: readonly PreparedWrite[],
): Promise<boolean> {
  const { mongo, postgres } = backend
  const intents = writes.map(({ intent }) => intent)
  const done = await recordWriteIntents(postgres.query, intents)
  const open = writes.filter(({ intent }) => !done.has(intent.id))
  const added = open.filter(({ current }) => !current)
  await insertShared(
    mongo,
    orgVault,
    added.map(({ intent: { id: mark, memory: id, after }, vectors }) => ({
      mark,
      content: { ...after!, id, vectors: vectors! },
    })),
  )
  const applied = added.map(({ intent }) => intent)
  for (const write of open) {
    if (write.current && (await applyChange(mongo, orgVault, write))) applied.push(write.intent)
  }
  if (applied.length > 0) await finalizeWrites(backend, orgVault, applied)
  return applied.length === writes.length
}

/** @returns false, with nothing written, when the document has changed since it was read. */
function applyChange(
  mongo: SharedMemoryBackend['mongo'],
  orgVault: OrgVault,
  { intent: { id: mark, memory: id, after }, current, vectors }: PreparedWrite,
): Promise<boolean> {
  const step = { current: current!, mark }
  if (!after) return tombstoneShared(mongo, orgVault, id, step)
  if (!vectors) return relabelShared(mongo, orgVault, { ...after, id }, step)
  return replaceShared(mongo, orgVault, { ...after, id, vectors }, step)
}

/** The audit actions of a change; none where nothing differs. */
function toAuditActions(
  before: MemorySnapshot | null,
  after: MemorySnapshot | null,
  kind: WriteKind,
): AuditAction[] {
  if (!before || !after) return before ? ['delete'] : after ? ['create'] : []
  const isUpdated =
    // A withdrawal may change the author alone.
    (kind === 'withdraw' && !isDeepStrictEqual(before, after)) ||
    before.text !== after.text ||
    before.confidence !== after.confidence ||
    before.reviewed !== after.reviewed
  const isRetagged = tagSetKey(before.tags) !== tagSetKey(after.tags)
  return [...(isUpdated ? ['update' as const] : []), ...(isRetagged ? ['retag' as const] : [])]
}
