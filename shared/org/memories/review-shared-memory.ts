import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { idForPurpose } from '#shared/core/ids.ts'
import { type SharedMemory, sharedByIds } from '#shared/org/memories/shared-memories.mongo.ts'
import {
  ignoreMissing,
  mutateSharedMemory,
  noSuchSharedMemory,
  toWriteId,
  type ChangeOrigin,
  type SharedMemoryBackend,
} from '#shared/org/memories/shared-change.ts'
import { deleteSharedMemory } from '#shared/org/memories/write-shared-memories.ts'
import { toSnapshot } from '#shared/org/memories/finalize-shared-writes.ts'
import { listMemoryRevisions, type MemoryRevision } from '#shared/org/memories/audit.postgres.ts'
import { listTags } from '#shared/org/base/tags.postgres.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'
import type { OrgVault } from '#shared/domain/job-payloads.ts'
import { tagSetKey } from '#shared/domain/tags.ts'
import { findReplacedMemories } from '#shared/org/base/org-trail.postgres.ts'

export type ReviewDecision = {
  action: 'approve' | 'dismiss' | 'reject'
  /** With approve. */
  tags: readonly string[] | undefined
  /** With approve. */
  text?: string | undefined
}

/**
 * Reviews a memory: `approve` takes the given tags and text, `dismiss` leaves the tags, `reject` removes the memory. The
 * memory that an approved one replaces is removed first: a run that ends between the two writes is completed by the
 * next request. Safe to run any number of times under one operation.
 *
 * @throws Refusal `conflict` when it has been reviewed; otherwise as `mutateSharedMemory`.
 */
export async function reviewSharedMemory(
  backend: SharedMemoryBackend,
  orgVault: OrgVault,
  { operation, actor, id, action, ...decision }: ChangeOrigin & ReviewDecision & { id: string },
): Promise<SharedMemory> {
  const { tags, text }: Partial<ReviewDecision> = action === 'approve' ? decision : {}
  if (text !== undefined)
    await changeWaiting(backend, orgVault, { operation, actor, id, text, tags })
  const write = { operation, actor, id, kind: 'review' } as const
  let waiting: ReviewCandidate | undefined
  const reviewed = await mutateSharedMemory(backend, orgVault, write, async ({ memory }) => {
    if (!memory) throw noSuchSharedMemory()
    if (memory.reviewed) {
      if (waiting) await undoLosingReview(backend, orgVault, { operation, actor, waiting })
      throw refusal('conflict', 'reviewedAlready')
    }
    waiting = await findReviewCandidate(backend, orgVault, memory)
    const by = { operation, actor, waiting }
    if (tags) await requireKnownTags(backend.postgres.query, orgVault.org, memory, tags)
    const { pending: _, ...snapshot } = toSnapshot(memory)
    const decided = { ...snapshot, tags: tags ?? memory.tags, reviewed: true }
    if (action === 'approve') {
      const replaced = await deleteSuperseded(backend, orgVault, by)
      return { ...decided, ...(replaced !== undefined && { replaced }) }
    }
    await restoreSuperseded(backend, orgVault, by)
    return action === 'reject' ? null : decided
  })
  const decided = reviewed ?? (await findRejected(backend, orgVault, { operation, id }))
  if (!decided) throw noSuchSharedMemory()
  return decided
}

/**
 * Changes the text of a memory that waits, and it waits on. A write of its own before the decision: a text that is
 * refused must not remove what the memory replaces.
 */
async function changeWaiting(
  backend: SharedMemoryBackend,
  orgVault: OrgVault,
  {
    operation,
    text,
    tags,
    ...by
  }: ChangeOrigin & { id: string; text: string } & Pick<ReviewDecision, 'tags'>,
): Promise<void> {
  const write = { ...by, operation: idForPurpose(operation, 'text'), kind: 'edit' } as const
  await mutateSharedMemory(backend, orgVault, write, async ({ memory }) => {
    if (!memory) throw noSuchSharedMemory()
    if (memory.reviewed) throw refusal('conflict', 'reviewedAlready')
    if (tags) await requireKnownTags(backend.postgres.query, orgVault.org, memory, tags)
    const snapshot = toSnapshot(memory)
    return text === memory.text ? snapshot : { ...snapshot, text, byHand: true }
  })
}

/** The memory before this operation rejected it. */
async function findRejected(
  { postgres }: Pick<SharedMemoryBackend, 'postgres'>,
  { org }: OrgVault,
  { operation, id }: { operation: string; id: string },
): Promise<SharedMemory | undefined> {
  const revisions = await listMemoryRevisions(postgres.query, org, id)
  const rejection = revisions.find(revision => revision.id === toWriteId({ operation, id }))
  if (!rejection?.before || rejection.after) return undefined
  return { ...rejection.before, id, version: 0, updatedAt: rejection.createdAt }
}

/** @throws Refusal `invalid` for a tag that neither the memory nor the organization has. */
async function requireKnownTags(
  query: Query,
  org: string,
  memory: Pick<SharedMemory, 'tags'>,
  tags: readonly string[],
): Promise<void> {
  const labels = (await listTags(query, org)).map(({ label }) => label)
  const unknown = tags.find(tag => !labels.includes(tag) && !memory.tags.includes(tag))
  if (unknown === undefined) return
  throw new Refusal(
    'invalid',
    `The organization has no tag ${JSON.stringify(unknown)}`,
    labels.length > 0 ? `Its tags: ${labels.slice(0, 20).join(', ')}` : 'POST …/tags makes one',
  )
}

/**
 * Takes back what this review did when another one was faster: restores what it removed, and removes again what it
 * restored where the other was an approval.
 */
async function undoLosingReview(
  backend: SharedMemoryBackend,
  orgVault: OrgVault,
  { waiting, ...by }: ChangeOrigin & { waiting: ReviewCandidate },
): Promise<void> {
  const revisions = await listMemoryRevisions(backend.postgres.query, orgVault.org, waiting.id)
  const decision = revisions.find(({ kind }) => kind === 'review')
  const replaced = decision?.after?.replaced
  if (replaced === undefined) return restoreSuperseded(backend, orgVault, { ...by, waiting })
  const operation = idForPurpose(by.operation, 'superseded by another review')
  const removal = { operation, actor: decision!.actor, id: replaced }
  await deleteSharedMemory(backend, orgVault, removal).catch(ignoreMissing)
}

/**
 * Undoes the last review of a memory: it gets its former tags and waits again, also where it was rejected. The memory
 * that was removed with it is restored, unless it was changed since.
 *
 * @throws Refusal `conflict` when it was not reviewed in the last 30 days, or its tags were changed since;
 *   otherwise as `mutateSharedMemory`.
 */
export async function undoReview(
  backend: SharedMemoryBackend,
  orgVault: OrgVault,
  { operation, actor, id }: ChangeOrigin & { id: string },
): Promise<SharedMemory> {
  const write = { operation, actor, id, kind: 'undo' } as const
  const undone = await mutateSharedMemory(backend, orgVault, write, async ({ memory }) => {
    const revisions = await listMemoryRevisions(backend.postgres.query, orgVault.org, id)
    if (!memory) {
      const [rejection] = revisions
      if (rejection?.kind === 'review' && rejection.before) return rejection.before
      throw noSuchSharedMemory()
    }
    const last = revisions.find(({ kind }) => kind === 'review' || kind === 'undo')
    if (last?.kind !== 'review' || !memory.reviewed || !last.before || !last.after) {
      throw refusal('conflict', 'noDecision')
    }
    if (tagSetKey(memory.tags) !== tagSetKey(last.after.tags)) {
      throw refusal('conflict', 'tagsChanged')
    }
    const { replaced } = last.after
    if (replaced !== undefined) {
      const back = { operation, actor, id: replaced }
      await restoreDeleted(backend, orgVault, back, removal => removal.createdAt <= last.createdAt)
    }
    const { pending } = last.before
    const snapshot = { ...toSnapshot(memory), tags: last.before.tags, reviewed: false }
    return { ...snapshot, ...(pending && { pending }) }
  })
  if (!undone) throw noSuchSharedMemory()
  return undone
}

/** A memory that waits for a person. */
type ReviewCandidate = {
  id: string
  /** The operation under which an approval removes what it replaces. */
  removal: string
}

/**
 * Derives the operation that removes what a waiting memory replaces: another one each time that it waits, the same
 * one however often it is changed meanwhile.
 */
async function findReviewCandidate(
  { postgres }: Pick<SharedMemoryBackend, 'postgres'>,
  { org }: OrgVault,
  { id }: Pick<SharedMemory, 'id'>,
): Promise<ReviewCandidate> {
  const revisions = await listMemoryRevisions(postgres.query, org, id)
  const last = revisions.find(({ kind }) => kind === 'review' || kind === 'undo')
  return { id, removal: idForPurpose(id, `replaces after ${last?.id ?? 'nothing'}`) }
}

/**
 * Finds what waiting memories would replace once they are approved, by the ids of those that wait.
 *
 * @throws Refusal `unavailable` when a store is out of reach.
 */
export async function findReplacements(
  { postgres, mongo }: Pick<SharedMemoryBackend, 'postgres' | 'mongo'>,
  orgVault: OrgVault,
  waiting: readonly Pick<SharedMemory, 'id'>[],
): Promise<Map<string, SharedMemory>> {
  const ids = waiting.map(({ id }) => id)
  const replaced = await findReplacedMemories(postgres.query, orgVault.org, ids)
  if (replaced.size === 0) return new Map()
  const rows = await sharedByIds(mongo, orgVault, [...new Set(replaced.values())])
  const byId = new Map(rows.map(row => [row.id, row]))
  return new Map(
    [...replaced].flatMap(([id, other]) => {
      const row = byId.get(other)
      return row ? [[id, row]] : []
    }),
  )
}

/**
 * Removes what a memory replaces, once for each time that it waits, also for two approvals at a time.
 *
 * @returns the id of what is replaced; undefined where there is none, or it is gone.
 * @throws Refusal as `deleteSharedMemory`, but for `missing`.
 */
async function deleteSuperseded(
  backend: SharedMemoryBackend,
  orgVault: OrgVault,
  { waiting, actor }: { waiting: ReviewCandidate; actor: string },
): Promise<string | undefined> {
  const id = await findSuperseded(backend, orgVault, waiting)
  if (id === undefined) return undefined
  const removal = { operation: waiting.removal, actor, id }
  return deleteSharedMemory(backend, orgVault, removal).then(() => id, ignoreMissing)
}

/**
 * Restores what an approval removed when another decision took effect. A memory changed since stays as it is.
 *
 * @throws Refusal as `mutateSharedMemory`, but for `missing`.
 */
async function restoreSuperseded(
  backend: SharedMemoryBackend,
  orgVault: OrgVault,
  { waiting, ...by }: ChangeOrigin & { waiting: ReviewCandidate },
): Promise<void> {
  const id = await findSuperseded(backend, orgVault, waiting)
  if (id === undefined) return
  const removal = toWriteId({ operation: waiting.removal, id })
  await restoreDeleted(backend, orgVault, { ...by, id }, revision => revision.id === removal)
}

/**
 * Restores a removed memory if its latest change is the expected removal.
 *
 * @throws Refusal as `mutateSharedMemory`, but for `missing`.
 */
async function restoreDeleted(
  backend: SharedMemoryBackend,
  orgVault: OrgVault,
  change: ChangeOrigin & { id: string },
  isExpectedRemoval: (removal: MemoryRevision) => boolean,
): Promise<void> {
  const { query } = backend.postgres
  const [latest] = await listMemoryRevisions(query, orgVault.org, change.id)
  if (!latest?.before || latest.after || !isExpectedRemoval(latest)) return
  await mutateSharedMemory(backend, orgVault, { ...change, kind: 'restore' }, ({ memory }) =>
    memory ? toSnapshot(memory) : latest.before,
  )
}

const findSuperseded = async (
  { postgres }: Pick<SharedMemoryBackend, 'postgres'>,
  { org }: OrgVault,
  { id }: Pick<ReviewCandidate, 'id'>,
): Promise<string | undefined> => (await findReplacedMemories(postgres.query, org, [id])).get(id)
