import { Refusal } from '#shared/core/errors.ts'
import { unsureShared } from '#shared/org/shared-lists.mongo.ts'
import type { SharedMemory } from '#shared/org/shared-memories.mongo.ts'
import { changeShared, noSuchShared, type By, type Changing } from '#shared/org/shared-change.ts'
import { snapshotOf } from '#shared/org/shared-settle.ts'
import { bringBack, leaveReplaced, takeReplaced } from '#shared/org/replacement.ts'
import { revisionsOf } from '#shared/org/audit.postgres.ts'
import type { OrgVault } from '#shared/domain/job-payloads.ts'
import { tagSetOf } from '#shared/domain/tags.ts'

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
 * tags as they are. Either way it has been reviewed. What an approved one was added to replace is removed
 * first, so that a decision which is cut short between the two is made again by whoever asks again. A
 * second run under the same operation decides nothing more.
 *
 * @throws Refusal `missing` when there is no such memory; `conflict` when it has been reviewed;
 *   `invalid` for tags with dismiss; `upstream` when a memory has to be brought back and the embedding
 *   model does not answer; `unavailable` when a store is out of reach.
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
  let waiting: SharedMemory | undefined
  const reviewed = await changeShared(backend, place, asked, async ({ memory }) => {
    if (!memory) throw noSuchShared()
    if (memory.reviewed) {
      if (waiting) await yieldTo(backend, place, { operation, actor, waiting })
      throw new Refusal(
        'conflict',
        'This memory has been reviewed already',
        'PATCH changes it; POST …/review/undo takes the decision back',
      )
    }
    waiting = memory
    const by = { operation, actor, waiting }
    const decided = { ...snapshotOf(memory), tags: tags ?? memory.tags, reviewed: true }
    if (action === 'approve') {
      const replaced = await takeReplaced(backend, place, by)
      return { ...decided, ...(replaced !== undefined && { replaced }) }
    }
    await leaveReplaced(backend, place, by)
    return decided
  })
  if (!reviewed) throw noSuchShared()
  return reviewed
}

/** Somebody else was faster: what this one had removed is brought back, unless that was an approval. */
async function yieldTo(
  backend: Changing,
  place: OrgVault,
  { waiting, ...by }: By & { waiting: SharedMemory },
): Promise<void> {
  const revisions = await revisionsOf(backend.postgres.query, place.org, waiting.id)
  const decision = revisions.find(({ kind }) => kind === 'review')
  if (decision?.after?.replaced === undefined)
    await leaveReplaced(backend, place, { ...by, waiting })
}

/**
 * Takes the last decision about a memory back: it has the tags it had before, and waits again. What was
 * removed with it comes back, unless somebody has decided about that since.
 *
 * @throws Refusal `missing` when there is no such memory; `conflict` when nobody has decided about it in
 *   the last 30 days, or its tags were changed since; `upstream` when the embedding model does not
 *   answer; `unavailable` when a store is out of reach.
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
    const { replaced } = last.after
    if (replaced !== undefined) {
      const back = { operation, actor, id: replaced }
      await bringBack(backend, place, back, removal => removal.createdAt <= last.createdAt)
    }
    return { ...snapshotOf(memory), tags: last.before.tags, reviewed: false }
  })
  if (!undone) throw noSuchShared()
  return undone
}
