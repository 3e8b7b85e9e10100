import { actorOf, type Caller } from '#shared/access/caller.ts'
import type { Feedback } from '#shared/domain/feedback.ts'
import { recordAccountEvent } from '#shared/events/account-events.postgres.ts'
import type { Stores } from '#shared/storage/stores.ts'
import { addDebt, debtOf } from '#shared/vault/base/debt-of-memories.ts'
import {
  changesBySession,
  changeVault,
  lockVault,
  takeVaultAdvisoryLock,
  withoutClearedSessions,
} from '#shared/vault/base/vaults.postgres.ts'
import {
  findJudged,
  noteUntoldSources,
  reflectionsMadeOf,
  setFeedback,
} from '#shared/vault/edit/feedback.mongo.ts'
import { contentsLock } from '#shared/vault/edit/finalize-edit.postgres.ts'

/**
 * Notes what the owner of a vault says of memories, in its core and in sessions. What is wrong, outdated or of another
 * person is from then on in no search, block, profile or batch; `right` tells it again. Its text, vectors and id stay.
 * Reflections that were made of them say so. An account event names the memories and who said so. Sent again it is done again: a process that died between its two
 * stores has answered nothing.
 *
 * @returns the ids of those that exist
 * @throws Refusal `unavailable` when a store is out of reach.
 */
export function giveFeedback(
  { postgres, mongo }: Stores,
  caller: Caller,
  request: {
    /** In lower case, each once. */
    ids: readonly string[]
    feedback: Feedback
    /** Nothing is written. */
    isPreview?: boolean
  },
): Promise<string[]> {
  const { ids, feedback, isPreview = false } = request
  const { scope, account, maskedKey } = caller
  return postgres.transaction(async tx => {
    // As edits, commits and deletions: the debt counts each change once.
    await takeVaultAdvisoryLock(tx, scope.vault, contentsLock)
    const found = await findJudged(mongo, scope, ids)
    const judged = await withoutClearedSessions(tx.query, scope, found)
    if ((await lockVault(tx, scope.vault)).epoch !== scope.epoch) return []
    const told = judged.map(({ id }) => id)
    if (isPreview || told.length === 0) return told
    const after = debtOf(judged.map(one => ({ ...one, feedback })))
    // Removed and stored: an index drops them, and reads again those that are told.
    const reflections = await reflectionsMadeOf(mongo, scope, judged)
    const sessionOf = new Map([
      ...reflections.map(({ _id }) => [_id, null] as const),
      ...judged.map(({ id, session }) => [id, session] as const),
    ])
    const changed = Array.from(sessionOf, ([id, session]) => ({ id, session }))
    const changes = changesBySession(changed, some => ({ removed: some, stored: some }))
    await changeVault(tx, scope.vault, changes, addDebt(after, debtOf(judged), -1))
    const subject = { account, actor: actorOf(caller), subject: maskedKey } as const
    const change = [null, { feedback, memories: told }] as const
    await recordAccountEvent(tx, { ...subject, action: 'feedback.given', change })
    await setFeedback(mongo, scope, told, feedback)
    await noteUntoldSources(mongo, scope, reflections)
    return told
  })
}
