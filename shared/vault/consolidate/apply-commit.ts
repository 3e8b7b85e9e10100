import { applyCurrentRetention, withExpiryProtocol } from '#shared/vault/base/expiry-protocol.ts'
import {
  addReflections,
  markConsolidated,
  type ConsolidatedTotals,
} from '#shared/vault/consolidate/reflections.mongo.ts'
import { deleteLease, findLease, finalizeLease } from '#shared/vault/consolidate/leases.postgres.ts'
import {
  changeVault,
  lockVault,
  takeVaultAdvisoryLock,
} from '#shared/vault/base/vaults.postgres.ts'
import type { CommitJob } from '#shared/domain/job-payloads.ts'
import type { DebtChange } from '#shared/domain/vault-change.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { MemoryStore } from '#shared/vault/base/memories.mongo.ts'
import { setTimeout as delay } from 'node:timers/promises'
import type { VaultScope } from '#shared/domain/memory.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'
import type { LeaseWithState } from '#shared/domain/lease.ts'

/**
 * Applies an accepted commit: stores the reflections, marks their sources, and in one transaction finalizes the
 * lease, moves the debt and makes the change visible. Safe to run any number of times at once: ids are fixed,
 * marks name the batch, and a lease is finalized once.
 *
 * @returns the number of marked sources; null when the vault was cleared since and nothing was stored.
 * @throws Refusal `unavailable` when a store is out of reach; the next run goes on.
 */
export async function applyCommit(
  { postgres, mongo, queue, memories }: Stores & { queue: Queue; memories: MemoryStore },
  job: CommitJob,
): Promise<number | null> {
  const lease = await findLease(postgres.query, job, job.batch)
  if (!lease) return null
  if (lease.state === 'committed') return lease.consolidated

  const work = { operation: job.batch, vault: job.vault, memories: [commitExpiry(job)] }
  const ids = job.reflections.map(({ id }) => id)
  const count = await withExpiryProtocol({ postgres }, [work], async () => {
    await addReflections(mongo, job, lease.sourceIds)
    await applyCurrentRetention({ postgres, mongo }, postgres.query, {
      ...job,
      ids,
      days: job.retentionDays ?? null,
    })
    return consolidate({ postgres, mongo, queue }, job, lease.sourceIds)
  })
  if (count !== null) return count
  await memories.discard(job, ids)
  return null
}

/**
 * Marks the sources and finalizes the lease under one lock on the vault's contents: a source is deleted or
 * edited either before it is marked or after the debt has moved.
 *
 * @returns null when the vault was cleared since the commit.
 */
function consolidate(
  { postgres, mongo, queue }: Stores & { queue: Queue },
  job: CommitJob,
  sourceIds: readonly string[],
): Promise<number | null> {
  return postgres.transaction(async tx => {
    await takeVaultAdvisoryLock(tx, job.vault, 'contents')
    const consolidated = await markConsolidated(mongo, job, sourceIds)
    if ((await lockVault(tx, job.vault)).epoch !== job.epoch) {
      await deleteLease(tx, job)
      return null
    }
    if (await finalizeLease(tx, job, consolidated.count)) {
      const stored = job.reflections.map(({ id }) => id)
      const debt = debtChangeOf(job, consolidated)
      await changeVault(tx, job.vault, [{ session: null, stored }], debt, queue)
    }
    return consolidated.count
  })
}

const commitExpiry = ({ expiresAt }: CommitJob) => (expiresAt === undefined ? {} : { expiresAt })

/** The sources leave the debt; new tier 2 reflections join it, tier 3 ones do not. */
function debtChangeOf(
  { tier, reflections }: CommitJob,
  { count, tokens, importance }: ConsolidatedTotals,
): DebtChange {
  if (tier === 3) {
    return { tier2Count: -count, tier2Importance: -importance, tier2Tokens: -tokens }
  }
  return {
    rawUnits: -count,
    rawTokens: -tokens,
    tier2Count: reflections.length,
    tier2Importance: reflections.reduce((sum, { importance }) => sum + importance, 0),
    tier2Tokens: reflections.reduce((sum, { tokens }) => sum + tokens, 0),
  }
}

const pollIntervalMs = 50

/**
 * Waits while another request or a job commits a batch.
 *
 * @returns the lease once it is finalized, or its state after `withinMs`; undefined when there is none.
 */
export async function waitForCommit(
  query: Query,
  scope: Pick<VaultScope, 'vault' | 'epoch'>,
  batch: string,
  withinMs: number,
): Promise<LeaseWithState | undefined> {
  const deadline = Date.now() + withinMs
  for (;;) {
    const lease = await findLease(query, scope, batch)
    if (lease?.state !== 'committing' || Date.now() >= deadline) return lease
    await delay(pollIntervalMs)
  }
}
