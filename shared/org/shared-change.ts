import { Refusal } from '#shared/core/errors.ts'
import { copyIdOf } from '#shared/core/ids.ts'
import {
  findSharedMemoryState,
  type SharedMemory,
  type SharedMemoryState,
} from '#shared/org/shared-memories.mongo.ts'
import { tombstoneShared, relabelShared, replaceShared } from '#shared/org/shared-writes.mongo.ts'
import { openOrgEmbedders, undefinedIfUnavailable } from '#shared/vault/base/shared-embedders.ts'
import { finalizeWrites, toSnapshot } from '#shared/org/finalize-shared-writes.ts'
import {
  findSharedWrites,
  recordWriteIntents,
  listPendingWrites,
  type AuditAction,
  type WriteIntent,
  type MemorySnapshot,
  type WriteKind,
} from '#shared/org/shared-writes.postgres.ts'
import { applyRedaction } from '#shared/privacy/apply-redaction.ts'
import { countTokens } from '#shared/core/tokens.ts'
import type { OrgVault } from '#shared/domain/job-payloads.ts'
import { tagSetKey, sortUniqueTags } from '#shared/domain/tags.ts'
import { activeOrgRedaction } from '#shared/org/redaction.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'

/** Who changes something, and under which id: asking again under the same one changes once. */
export type ChangeOrigin = {
  /** A UUIDv7 that stands for one change of one memory, or for one seeding. */
  operation: string
  /** An admin's email, or how the organization calls the member. */
  actor: string
}

export type SharedMemoryBackend = Stores & {
  queue: Queue
  embedders: Embedders
  now: () => number
}

type MutationRequest = ChangeOrigin & { id: string; kind: WriteKind }

/** What a memory is to say, told what stands there now; null removes it. */
type Mutation = (
  standing: SharedMemoryState,
) => MemorySnapshot | null | Promise<MemorySnapshot | null>

/** Somebody else would have to change the same memory between each reading and writing of it. */
const triesMax = 8

/**
 * Makes one change of one shared memory: written down, done, and told. Done means one write to the
 * document that takes it only as it was read, so that two changes at once follow each other, and
 * whoever dies leaves a mark by which the next run, or the sweep, knows how far it came.
 *
 * @param mutation says what is to become of it, or throws the refusal; called again when somebody else was
 *   faster.
 * @returns what stands there afterwards; null when nothing does.
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
    const intent = buildIntent(orgVault, request, current, planned)
    if (intent.actions.length === 0) return current.memory
    const vectors = await embedSnapshot(backend, orgVault, current, intent.after)
    if ((await recordWriteIntents(postgres.query, [intent])).has(writeId)) continue
    if (!(await applyIntent(backend, orgVault, intent, { standing: current, vectors }))) continue
    await finalizeWrites(backend, orgVault, [intent])
    if (!intent.after) return null
    const { version } = current
    return { ...intent.after, id: request.id, updatedAt: backend.now(), version: version + 1 }
  }
  throw new Refusal('conflict', 'Somebody else keeps changing this memory', 'Try again')
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

/** What came about and was not told: told now, before marks of later writes push its own out. */
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

function buildIntent(
  { org, vault, epoch }: OrgVault,
  { operation, actor, id, kind }: MutationRequest,
  { memory }: SharedMemoryState,
  snapshot: MemorySnapshot | null,
): WriteIntent {
  const before = memory && toSnapshot(memory)
  const after = snapshot && {
    ...snapshot,
    tags: sortUniqueTags(snapshot.tags),
    tokens: countTokens(snapshot.text),
  }
  const writeId = toWriteId({ operation, id })
  const actions = toAuditActions(before, after)
  return { id: writeId, org, vault, epoch, memory: id, kind, actor, actions, before, after }
}

/** Whatever words a change brings, the policy of the organization holds for them. */
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

/** How the audit calls the way from one to the other; nothing where they are the same. */
function toAuditActions(
  before: MemorySnapshot | null,
  after: MemorySnapshot | null,
): AuditAction[] {
  if (!before || !after) return before ? ['delete'] : after ? ['create'] : []
  const isUpdated =
    before.text !== after.text ||
    before.confidence !== after.confidence ||
    before.reviewed !== after.reviewed
  const isRetagged = tagSetKey(before.tags) !== tagSetKey(after.tags)
  return [...(isUpdated ? ['update' as const] : []), ...(isRetagged ? ['retag' as const] : [])]
}

/** Of a text that is new; null where there is none to embed. */
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
    standing: current,
    vectors,
  }: { standing: SharedMemoryState; vectors: Record<string, Float32Array> | null },
): Promise<boolean> {
  const step = { standing: current, mark: writeId }
  if (!after) return tombstoneShared(mongo, orgVault, id, step)
  if (!vectors) return relabelShared(mongo, orgVault, { ...after, id }, step)
  return replaceShared(mongo, orgVault, { ...after, id, vectors }, step)
}
