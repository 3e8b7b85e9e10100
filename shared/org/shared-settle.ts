import type { SharedMemory } from '#shared/org/shared-memories.mongo.ts'
import { recordBurial } from '#shared/vault/base/erasures.postgres.ts'
import { billShared, forgetMembersAnswers } from '#shared/org/shared-bills.postgres.ts'
import { countTagSets } from '#shared/vault/base/tag-sets.postgres.ts'
import { completeWrites, type Intent, type Snapshot } from '#shared/org/shared-writes.postgres.ts'
import { lockVault } from '#shared/vault/base/vault-lock.postgres.ts'
import { changeVault } from '#shared/vault/base/vaults.postgres.ts'
import type { OrgVault } from '#shared/domain/job-payloads.ts'
import { tagSetOf } from '#shared/domain/tags.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'

/** What history keeps of a memory. */
export const snapshotOf = (memory: Snapshot | SharedMemory): Snapshot => ({
  text: memory.text,
  tags: memory.tags,
  confidence: memory.confidence,
  author: memory.author,
  reviewed: memory.reviewed,
  ...(memory.byHand && { byHand: true }),
  acquiredAt: memory.acquiredAt,
  tokens: memory.tokens,
})

/**
 * Tells of writes that have come about, each once, in one transaction: the audit, the images of every
 * process, the counts of tag sets, the bill. Any number of runs tell it once.
 */
export async function settleWrites(
  { postgres }: { postgres: Postgres },
  { org, vault, epoch }: OrgVault,
  writes: readonly Intent[],
): Promise<void> {
  await postgres.transaction(async tx => {
    // Held first: two that settle wait for each other here and nowhere else.
    const standing = await lockVault(tx, vault)
    const completed = await completeWrites(tx, writes)
    const settled = writes.filter(({ id }) => completed.has(id))
    if (settled.length === 0) return
    await billShared(tx, org, settled.flatMap(billOf))
    const removed = settled.filter(({ after }) => !after)
    if (removed.length > 0) await recordBurial(tx, vault)
    if (settled.some(({ before }) => before !== null)) await forgetMembersAnswers(tx, org)
    // After a clearing nothing of this can be seen.
    if (standing.epoch !== epoch) return
    await countTagSets(tx, vault, tagSetChanges(settled))
    const stored = settled.filter(({ after }) => after !== null)
    const idsOf = (some: readonly Intent[]) => some.map(({ memory }) => memory)
    // An image of what some may see must let go of what they may not see any more.
    await changeVault(tx, vault, [
      { session: null, removed: idsOf(settled), stored: idsOf(stored) },
    ])
  })
}

function tagSetChanges(writes: readonly Intent[]): Map<string, number> {
  const changes = new Map<string, number>()
  const count = (snapshot: Snapshot | null, by: number) => {
    if (!snapshot) return
    const tagSet = tagSetOf(snapshot.tags)
    changes.set(tagSet, (changes.get(tagSet) ?? 0) + by)
  }
  for (const { before, after } of writes) {
    count(before, -1)
    count(after, 1)
  }
  return changes
}

/** Storage: of what is new, and of texts that are. */
const billOf = ({ id, before, after }: Intent): { id: string; tokens: number }[] =>
  after && after.text !== before?.text ? [{ id, tokens: after.tokens }] : []
