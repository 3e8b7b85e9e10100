import { copyIdOf } from '#shared/core/ids.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import { acceptOperations } from '#shared/operations/accept-operations.ts'
import { lockManyVaults } from '#shared/operations/vault-locks.postgres.ts'
import {
  epochMax,
  deleteVaultUse,
  listKeysOfVaults,
  retireVaultRows,
} from '#shared/vault/delete/retired-vaults.postgres.ts'
import type { ClearJob } from '#shared/domain/job-payloads.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'

export type Retirement = {
  /** The UUIDv7 of the request: the first erasure runs under it, others under ids derived from it. */
  operation: string
  /** The owner of the vaults; their erasures are among its operations. */
  account: string
  /** Of the key of the request. */
  keyHash: Buffer
  vaults: readonly string[]
}

/** So that no statement is long, whatever an account has: 1,000 vaults take about 0.3 s. */
const vaultsMax = 1_000

/**
 * Retires vaults. From the commit of the transaction on no process can see their memories; the jobs that
 * remove them from both stores are accepted in the same transaction. Call it before the keys are deleted,
 * and `vaultIndexes.forget` for each vault afterwards.
 */
export async function retireVaults(
  tx: Transaction,
  { queue }: { queue: Queue },
  retirement: Retirement,
): Promise<void> {
  const { vaults } = retirement
  // All of them, and first, as in transactions that settle work there.
  await lockManyVaults(tx, vaults)
  for (let first = 0; first < vaults.length; first += vaultsMax)
    await retireSome(tx, queue, retirement, first)
}

/** Retires 1,000 of the vaults, from the one at `first` on. */
async function retireSome(
  tx: Transaction,
  queue: Queue,
  { operation, account, keyHash, vaults: all }: Retirement,
  first: number,
): Promise<void> {
  const vaults = all.slice(first, first + vaultsMax)
  await retireVaultRows(tx, vaults)
  await deleteVaultUse(tx, vaults)
  const keys = await listKeysOfVaults(tx, vaults)
  const jobs = vaults.map((vault, index): ClearJob => ({
    operation: first + index === 0 ? operation : copyIdOf(operation, first + index, vault),
    vault,
    session: null,
    from: 0,
    upTo: epochMax,
    vaultEpoch: epochMax,
    key: '',
    reset: true,
    keys: keys.get(vault) ?? [],
  }))
  await acceptOperations(
    tx,
    queue,
    jobs.map(job => ({
      operation: {
        id: job.operation,
        account,
        vault: job.vault,
        keyHash,
        kind: 'clear',
        awaited: false,
        session: null,
        total: 0,
        // Nothing of it can be seen any more: it cannot be cancelled.
        started: true,
        billing: 'never',
      },
      queueName: 'clear',
      jobs: () => [{ id: job.operation, data: job, priority: 0 }],
    })),
    { areLocked: true },
  )
}
