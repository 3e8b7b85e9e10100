import { setTimeout as delay } from 'node:timers/promises'
import type { VaultScope } from '#shared/domain/memory.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'
import { findLease } from '#shared/vault/consolidate/leases.postgres.ts'
import type { LeaseWithState } from '#shared/domain/lease.ts'

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
