import {
  type SharedMemory,
  reviewThreshold,
  findSharedMemoryState,
} from '#shared/org/memories/shared-memories.mongo.ts'
import { recordTombstoneDay } from '#shared/vault/base/erasures.postgres.ts'
import {
  billSharedMemories,
  completeSharedWrites,
  type WriteIntent,
  type MemorySnapshot,
  dueSharedWrites,
  postponeFailedWrite,
  postponeSharedWrites,
  type SharedWrite,
} from '#shared/org/memories/shared-writes.postgres.ts'
import { deleteMemberResponses, findOrgAccount } from '#shared/org/base/orgs.postgres.ts'
import { adjustTagSetCounts } from '#shared/vault/base/tag-sets.postgres.ts'
import { lockVault, changeVault } from '#shared/vault/base/vaults.postgres.ts'
import { markStatementsRemoved } from '#shared/org/memories/shared-statements.postgres.ts'
import type { OrgVault } from '#shared/domain/job-payloads.ts'
import { tagSetKey } from '#shared/domain/tags.ts'
import type { Postgres, Transaction } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import { emitWebhookEvents } from '#shared/events/webhooks/emit.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { Log } from '#shared/core/log.ts'
import type { Stores } from '#shared/storage/stores.ts'

/** The fields of a memory that its history stores. */
export const toSnapshot = (memory: MemorySnapshot | SharedMemory): MemorySnapshot => ({
  text: memory.text,
  tags: memory.tags,
  confidence: memory.confidence,
  author: memory.author,
  reviewed: memory.reviewed,
  ...(memory.byHand && { byHand: true }),
  ...(memory.pending && { pending: true }),
  acquiredAt: memory.acquiredAt,
  ...(memory.origin && { origin: memory.origin }),
  ...(memory.confirmedAt !== undefined && { confirmedAt: memory.confirmedAt }),
  ...(memory.metadata && { metadata: memory.metadata }),
  tokens: memory.tokens,
})

/**
 * Finalizes applied writes in one transaction: audit events, webhook messages, the change log that indexes read,
 * counts of tag sets, bills. Each write is finalized once, however often this runs.
 */
export async function finalizeWrites(
  { postgres, queue }: { postgres: Postgres; queue: Queue },
  { org, vault, epoch }: OrgVault,
  writes: readonly WriteIntent[],
): Promise<void> {
  await postgres.transaction(async tx => {
    // Locked first: two transactions that finalize writes wait for each other here and nowhere else.
    const vaultState = await lockVault(tx, vault)
    const completed = await completeSharedWrites(tx, writes)
    const settled = writes.filter(({ id }) => completed.has(id))
    if (settled.length === 0) return
    await emitReviewsWaiting(tx, queue, org, settled.filter(startsWaiting))
    await billSharedMemories(tx, org, settled.flatMap(toStorageBill))
    const removed = settled.filter(({ after }) => !after)
    if (removed.length > 0) await recordTombstoneDay(tx, vault)
    if (settled.some(({ before }) => before !== null)) await deleteMemberResponses(tx, org)
    await markStatementsRemoved(tx, org, {
      removed: removed.map(({ memory }) => memory),
      restored: settled.filter(isRestored).map(({ memory }) => memory),
    })
    // After a clearing nothing of this is visible.
    if (vaultState.epoch !== epoch) return
    await adjustTagSetCounts(tx, vault, countTagSetChanges(settled))
    const stored = settled.filter(({ after }) => after !== null && !after.pending)
    const idsOf = (some: readonly WriteIntent[]) => some.map(({ memory }) => memory)
    // Removed and stored: an index of one visibility drops what it may no longer contain.
    await changeVault(tx, vault, [
      { session: null, removed: idsOf(settled), stored: idsOf(stored) },
    ])
  })
}

const isRestored = ({ kind, before, after }: WriteIntent): boolean =>
  kind !== 'add' && !before && after !== null

const isWaiting = (snapshot: MemorySnapshot | null): boolean =>
  snapshot !== null && !snapshot.reviewed && snapshot.confidence < reviewThreshold

const startsWaiting = ({ before, after }: WriteIntent): boolean =>
  isWaiting(after) && !isWaiting(before)

async function emitReviewsWaiting(
  tx: Transaction,
  queue: Pick<Queue, 'send'>,
  org: string,
  writes: readonly WriteIntent[],
): Promise<void> {
  if (writes.length === 0) return
  const account = await findOrgAccount(tx.query, org)
  if (account === undefined) return
  const events = writes.map(({ memory, after }) => ({
    account,
    event: 'review.waiting' as const,
    data: { org_id: org, mem_id: memory, confidence: after?.confidence, tags: after?.tags },
  }))
  await emitWebhookEvents(tx, queue, events)
}

function countTagSetChanges(writes: readonly WriteIntent[]): Map<string, number> {
  const changes = new Map<string, number>()
  const count = (snapshot: MemorySnapshot | null, by: number) => {
    if (!snapshot) return
    const tagSet = tagSetKey(snapshot.tags)
    changes.set(tagSet, (changes.get(tagSet) ?? 0) + by)
  }
  for (const { before, after } of writes) {
    count(before, -1)
    count(after, 1)
  }
  return changes
}

const toStorageBill = ({ id, before, after }: WriteIntent): { id: string; tokens: number }[] =>
  after && after.text !== before?.text ? [{ id, tokens: after.tokens }] : []

const dueMax = 500

/**
 * Finalizes writes whose process ended between recording and finalizing them, at least 30 seconds ago. Writes that
 * were not applied are checked again, for a day. One that fails is logged and tried again later; it holds up no
 * other.
 *
 * @returns how many were finalized.
 * @throws Refusal `unavailable` when a store is out of reach.
 */
export async function finalizeStrandedWrites(
  backend: Stores & { queue: Queue; log: Log },
): Promise<number> {
  const { query } = backend.postgres
  const open: string[] = []
  let finalized = 0
  for (const write of await dueSharedWrites(query, dueMax)) {
    try {
      if (await finalizeIfApplied(backend, write)) finalized++
      else open.push(write.id)
    } catch (error) {
      if (error instanceof Refusal && error.reason === 'unavailable') throw error
      backend.log.error({ err: error, org: write.org, write: write.id }, 'shared-write.postponed')
      await postponeFailedWrite(query, write.id)
    }
  }
  if (open.length > 0) await postponeSharedWrites(query, open)
  return finalized
}

/** @returns false when the document does not have its mark. */
async function finalizeIfApplied(
  backend: Stores & { queue: Queue },
  write: SharedWrite,
): Promise<boolean> {
  const state = await findSharedMemoryState(backend.mongo, write, write.memory)
  if (!state?.marks.includes(write.id)) return false
  await finalizeWrites(backend, write, [write])
  return true
}
