import { Refusal } from '#shared/errors.ts'
import { unsureShared } from '#shared/mongo/shared-lists.ts'
import { tagSetOf, type SharedMemory } from '#shared/mongo/shared-memories.ts'
import {
  changeShared,
  noSuchShared,
  type By,
  type Changing,
  type OrgVault,
} from '#shared/org/shared-change.ts'
import { snapshotOf } from '#shared/org/shared-settle.ts'
import { revisionsOf } from '#shared/postgres/audit.ts'

/** Less sure than this, a memory waits for a person. */
export const reviewThreshold = 0.6

export type ReviewQuestion = { threshold: number; limit: number; newestFirst: boolean }

/**
 * What waits for a person: memories nobody has reviewed whose tags are less sure than the threshold.
 *
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export const reviewQueue = (
  { mongo }: Pick<Changing, 'mongo'>,
  place: OrgVault,
  question: ReviewQuestion,
): Promise<SharedMemory[]> => unsureShared(mongo, place, question)

export type Decision = { action: 'approve' | 'dismiss'; tags: readonly string[] | undefined }

/**
 * Decides about a memory: approves it, with other tags if need be, or dismisses the doubt and leaves the
 * tags as they are. Either way it has been reviewed. A second run under the same operation decides
 * nothing more.
 *
 * @throws Refusal `missing` when there is no such memory; `conflict` when it has been reviewed;
 *   `invalid` for tags with dismiss; `unavailable` when a store is out of reach.
 */
export async function reviewShared(
  backend: Changing,
  place: OrgVault,
  { operation, actor, id, action, tags }: By & Decision & { id: string },
): Promise<SharedMemory> {
  if (action === 'dismiss' && tags) {
    throw new Refusal('invalid', 'dismiss leaves the tags as they are', 'Send tags with approve')
  }
  const asked = { operation, actor, id, kind: 'review' } as const
  const reviewed = await changeShared(backend, place, asked, ({ memory }) => {
    if (!memory) throw noSuchShared()
    if (memory.reviewed) {
      throw new Refusal(
        'conflict',
        'This memory has been reviewed already',
        'PATCH changes it; POST …/review/undo takes the decision back',
      )
    }
    return { ...snapshotOf(memory), tags: tags ?? memory.tags, reviewed: true }
  })
  if (!reviewed) throw noSuchShared()
  return reviewed
}

/**
 * Takes the last decision about a memory back: it has the tags it had before, and waits again.
 *
 * @throws Refusal `missing` when there is no such memory; `conflict` when nobody has decided about it in
 *   the last 30 days, or its tags were changed since; `unavailable` when a store is out of reach.
 */
export async function undoReview(
  backend: Changing,
  place: OrgVault,
  { operation, actor, id }: By & { id: string },
): Promise<SharedMemory> {
  const asked = { operation, actor, id, kind: 'undo' } as const
  const undone = await changeShared(backend, place, asked, async ({ memory }) => {
    if (!memory) throw noSuchShared()
    const revisions = await revisionsOf(backend.postgres.query, place.org, id)
    const last = revisions.find(({ kind }) => kind === 'review' || kind === 'undo')
    if (last?.kind !== 'review' || !memory.reviewed || !last.before || !last.after) {
      throw new Refusal(
        'conflict',
        'There is no decision to take back',
        'Nobody has reviewed it in the last 30 days, or it waits for review already',
      )
    }
    if (tagSetOf(memory.tags) !== tagSetOf(last.after.tags)) {
      throw new Refusal(
        'conflict',
        'Its tags have been changed since it was reviewed',
        'PATCH changes tags and reviewed',
      )
    }
    return { ...snapshotOf(memory), tags: last.before.tags, reviewed: false }
  })
  if (!undone) throw noSuchShared()
  return undone
}
