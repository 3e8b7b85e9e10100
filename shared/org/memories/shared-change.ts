import { isDeepStrictEqual } from 'node:util'
import { Refusal } from '#shared/core/errors.ts'
import { copyIdOf, isUuid } from '#shared/core/ids.ts'
import {
  findSharedMemoryState,
  type SharedMemory,
  type SharedMemoryState,
} from '#shared/org/memories/shared-memories.mongo.ts'
import {
  tombstoneShared,
  relabelShared,
  replaceShared,
} from '#shared/org/memories/shared-writes.mongo.ts'
import { openOrgEmbedders, undefinedIfUnavailable } from '#shared/vault/base/shared-embedders.ts'
import { finalizeWrites, toSnapshot } from '#shared/org/memories/finalize-shared-writes.ts'
import {
  findSharedWrites,
  recordWriteIntents,
  listPendingWrites,
  type AuditAction,
  type WriteIntent,
  type MemorySnapshot,
  type WriteKind,
} from '#shared/org/memories/shared-writes.postgres.ts'
import { applyRedaction } from '#shared/privacy/apply-redaction.ts'
import { countTokensInSlices } from '#shared/core/tokens.ts'
import type { OrgVault } from '#shared/domain/job-payloads.ts'
import { tagSetKey, sortUniqueTags } from '#shared/domain/tags.ts'
import { activeOrgRedaction } from '#shared/org/base/redaction.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { OrgRow } from '#shared/org/base/orgs.postgres.ts'

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

type MutationRequest = ChangeOrigin & { id: string; kind: WriteKind }

/** The new content of a memory, given its current state; null removes it. */
type Mutation = (
  current: SharedMemoryState,
) => MemorySnapshot | null | Promise<MemorySnapshot | null>

/** A try fails only when another writer changes the memory between its read and its write. */
const triesMax = 8

/**
 * Changes one shared memory in three steps: records the intent in Postgres, applies it to the document,
 * finalizes it. The document is written only if it is as it was read, so that concurrent changes follow
 * one another. The write leaves its id as a mark in the document: from it the next run, or the sweep,
 * knows whether an interrupted change was applied.
 *
 * @param mutation returns the new content, or throws the refusal; called again when another change was
 *   faster
 * @returns the memory after the change; null when it was removed.
 * @throws Refusal `invalid` when it brings words that the policy of the organization blocks.
 */
export async function mutateSharedMemory(
  backend: SharedMemoryBackend,
  orgVault: OrgVault,
  request: MutationRequest,
  mutation: Mutation,
): Promise<SharedMemory | null> {
  const { mongo, postgres } = backend
  const writeId = toWriteId(request)
  for (let attempt = 0; attempt < triesMax; attempt++) {
    const earlierWrite = (await findSharedWrites(postgres.query, [writeId])).get(writeId)
    const current = await findSharedMemoryState(mongo, orgVault, request.id)
    if (earlierWrite?.state === 'done') return current?.memory ?? null
    if (!current) throw noSuchSharedMemory()
    if (earlierWrite && current.marks.includes(writeId)) {
      await finalizeWrites(backend, orgVault, [earlierWrite])
      return current.memory
    }
    await finalizeEarlierWrites(backend, orgVault, request.id, current)
    const planned = await redactSnapshot(backend, orgVault, current, await mutation(current))
    const intent = await buildIntent(orgVault, request, current, planned)
    if (intent.actions.length === 0) return current.memory
    const vectors = await embedSnapshot(backend, orgVault, current, intent.after)
    if ((await recordWriteIntents(postgres.query, [intent])).has(writeId)) continue
    if (!(await applyIntent(backend, orgVault, intent, { current, vectors }))) continue
    await finalizeWrites(backend, orgVault, [intent])
    if (!intent.after) return null
    const { version } = current
    return { ...intent.after, id: request.id, updatedAt: backend.now(), version: version + 1 }
  }
  throw new Refusal('conflict', 'Other requests keep changing this memory', 'Try again')
}

export const noSuchSharedMemory = (): Refusal =>
  new Refusal(
    'missing',
    'No such memory',
    'GET /v1/orgs/:orgId/memories lists those of the organization',
  )

/** The id of a change: the same for the same operation and memory. */
export const toWriteId = ({ operation, id }: Pick<MutationRequest, 'operation' | 'id'>): string =>
  copyIdOf(operation, 0, id)

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

async function buildIntent(
  { org, vault, epoch }: OrgVault,
  { operation, actor, id, kind }: MutationRequest,
  { memory }: SharedMemoryState,
  snapshot: MemorySnapshot | null,
): Promise<WriteIntent> {
  const before = memory && toSnapshot(memory)
  const after = snapshot && {
    ...snapshot,
    tags: sortUniqueTags(snapshot.tags),
    tokens: await countTokensInSlices(snapshot.text),
  }
  const writeId = toWriteId({ operation, id })
  const actions = toAuditActions(before, after, kind)
  return { id: writeId, org, vault, epoch, memory: id, kind, actor, actions, before, after }
}

/** Applies the redaction of the organization to a new text. */
async function redactSnapshot(
  { postgres }: SharedMemoryBackend,
  { org }: OrgVault,
  { memory }: SharedMemoryState,
  snapshot: MemorySnapshot | null,
): Promise<MemorySnapshot | null> {
  if (!snapshot || snapshot.text === memory?.text) return snapshot
  const redaction = await activeOrgRedaction(postgres.query, org)
  return { ...snapshot, text: applyRedaction(redaction, snapshot.text, 'text') }
}

/** The audit actions of a change; none where nothing differs. */
function toAuditActions(
  before: MemorySnapshot | null,
  after: MemorySnapshot | null,
  kind: WriteKind,
): AuditAction[] {
  if (!before || !after) return before ? ['delete'] : after ? ['create'] : []
  const isUpdated =
    // Who said it changes with a withdrawal, and stays with any other change of tags or opinion.
    (kind === 'withdraw' && !isDeepStrictEqual(before, after)) ||
    before.text !== after.text ||
    before.confidence !== after.confidence ||
    before.reviewed !== after.reviewed
  const isRetagged = tagSetKey(before.tags) !== tagSetKey(after.tags)
  return [...(isUpdated ? ['update' as const] : []), ...(isRetagged ? ['retag' as const] : [])]
}

/** The vectors of a new text by space; null where the text stays. */
async function embedSnapshot(
  backend: SharedMemoryBackend,
  { org }: OrgVault,
  { memory }: SharedMemoryState,
  snapshot: MemorySnapshot | null,
): Promise<Record<string, Float32Array> | null> {
  if (!snapshot || snapshot.text === memory?.text) return null
  const [embedder, ...former] = await openOrgEmbedders(backend, org)
  const [vector] = await embedder.embedTexts([snapshot.text])
  const vectors = { [embedder.space]: vector! }
  for (const one of former) {
    const other = await undefinedIfUnavailable(one.embedTexts([snapshot.text]))
    if (other) vectors[one.space] = other[0]!
  }
  return vectors
}

function applyIntent(
  { mongo }: SharedMemoryBackend,
  orgVault: OrgVault,
  { id: writeId, memory: id, after }: WriteIntent,
  {
    current,
    vectors,
  }: { current: SharedMemoryState; vectors: Record<string, Float32Array> | null },
): Promise<boolean> {
  const step = { current, mark: writeId }
  if (!after) return tombstoneShared(mongo, orgVault, id, step)
  if (!vectors) return relabelShared(mongo, orgVault, { ...after, id }, step)
  return replaceShared(mongo, orgVault, { ...after, id, vectors }, step)
}

/** The current shared vault of an organization. */
export const toOrgVault = ({ id, vault, epoch }: OrgRow): OrgVault => ({ org: id, vault, epoch })

/**
 * The id of a shared memory from a request, in any case.
 *
 * @throws Refusal `missing` for what is no id at all.
 */
export function parseSharedMemoryId(text = ''): string {
  if (isUuid(text)) return text.toLowerCase()
  throw noSuchSharedMemory()
}
