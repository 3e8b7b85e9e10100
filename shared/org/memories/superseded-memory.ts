import { Refusal } from '#shared/core/errors.ts'
import { idForPurpose } from '#shared/core/ids.ts'
import { sharedByIds, type SharedMemory } from '#shared/org/memories/shared-memories.mongo.ts'
import {
  mutateSharedMemory,
  toWriteId,
  type ChangeOrigin,
  type SharedMemoryBackend,
} from '#shared/org/memories/shared-change.ts'
import { deleteSharedMemory } from '#shared/org/memories/write-shared-memories.ts'
import { toSnapshot } from '#shared/org/memories/finalize-shared-writes.ts'
import { listMemoryRevisions, type MemoryRevision } from '#shared/org/memories/audit.postgres.ts'
import { findReplacedMemories } from '#shared/org/base/org-trail.postgres.ts'
import type { OrgVault } from '#shared/domain/job-payloads.ts'

/** A memory that waits for a person. */
export type ReviewCandidate = {
  id: string
  /** The operation under which an approval removes what it replaces. */
  removal: string
}

/**
 * A memory that waits, with the operation that removes what it replaces: another one each time that it
 * waits, and the same one however often it is changed meanwhile.
 */
export async function findReviewCandidate(
  { postgres }: Pick<SharedMemoryBackend, 'postgres'>,
  { org }: OrgVault,
  { id }: Pick<SharedMemory, 'id'>,
): Promise<ReviewCandidate> {
  const revisions = await listMemoryRevisions(postgres.query, org, id)
  const last = revisions.find(({ kind }) => kind === 'review' || kind === 'undo')
  return { id, removal: idForPurpose(id, `replaces after ${last?.id ?? 'nothing'}`) }
}

/**
 * What memories that wait would replace once they are approved, by the ids of those that wait: nothing
 * for the others, and where what would be replaced is gone, or the trail that knows of it.
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
 * Removes what a memory replaces, once for each time that it waits: two who approve it at the same time,
 * and one who does it again after a failure, remove it once.
 *
 * @returns the id of what is replaced; undefined where there is none, or it had been removed before.
 * @throws Refusal as `deleteShared`, but for `missing`.
 */
export async function deleteSuperseded(
  backend: SharedMemoryBackend,
  orgVault: OrgVault,
  { waiting, actor }: { waiting: ReviewCandidate; actor: string },
): Promise<string | undefined> {
  const id = await findSuperseded(backend, orgVault, waiting)
  if (id === undefined) return undefined
  try {
    await deleteSharedMemory(backend, orgVault, { operation: waiting.removal, actor, id })
    return id
  } catch (error) {
    if (error instanceof Refusal && error.reason === 'missing') return undefined
    throw error
  }
}

/**
 * Restores what an approval removed when the approval itself did not take effect: another decision came
 * first, or the same person decided otherwise after a failure. A memory decided about since is unchanged.
 *
 * @throws Refusal as `restoreShared`, but for `missing`.
 */
export async function restoreSuperseded(
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
 * Makes a removed memory what it was, if its latest change is the removal that is meant.
 *
 * @throws Refusal as `restoreShared`, but for `missing`.
 */
export async function restoreDeleted(
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
