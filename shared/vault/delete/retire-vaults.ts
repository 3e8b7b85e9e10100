import { copyIdOf } from '#shared/core/ids.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import { insertOperations, zeroUsage } from '#shared/operations/operations.postgres.ts'
import {
  startErasureOperations,
  epochMax,
  deleteVaultUse,
  retireVaultRows,
} from '#shared/vault/delete/retired-vaults.postgres.ts'
import type { ClearJob } from '#shared/domain/job-payloads.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'

export type Retirement = {
  /** The UUIDv7 of the request: the first erasure runs under it, others under ids derived from it. */
  operation: string
  /** Who pays for the vaults, and sees their erasure among its operations. */
  account: string
  /** Of whoever asks. */
  keyHash: Buffer
  vaults: readonly string[]
}

/**
 * Ends vaults for good. When the transaction commits nothing of them can be seen any more, by any
 * process; the jobs that remove it from both stores are promised with it. Call it before their keys
 * are deleted, and `images.forget` for each afterwards.
 */
export async function retireVaults(
  tx: Transaction,
  { queue }: { queue: Queue },
  { operation, account, keyHash, vaults }: Retirement,
): Promise<void> {
  // First of all, since it holds the vaults: whoever settles work there holds them first too.
  await retireVaultRows(tx, vaults)
  await deleteVaultUse(tx, vaults)
  const jobs = vaults.map((vault, index): ClearJob => ({
    operation: index === 0 ? operation : copyIdOf(operation, index, vault),
    vault,
    session: null,
    from: 0,
    upTo: epochMax,
    key: '',
    reset: true,
  }))
  await insertOperations(
    tx,
    jobs.map(({ operation: id, vault }) => ({
      id,
      account,
      vault,
      keyHash,
      kind: 'clear',
      awaited: false,
      session: null,
      total: 0,
      ...zeroUsage,
    })),
  )
  await startErasureOperations(
    tx,
    jobs.map(({ operation: id }) => id),
  )
  await queue.send(
    tx,
    'clear',
    jobs.map(job => ({ id: job.operation, data: job, priority: 0 })),
  )
}
