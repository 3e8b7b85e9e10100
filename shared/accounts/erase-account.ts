import { breakGlassHash } from '#shared/access/admin.ts'
import {
  deleteAccountUse,
  anonymizeAccount,
  saveErasureReceipt,
  readErasureProgress,
  findAccountErasure,
  lockAccount,
  insertAccountErasure,
  type AccountErasureRow,
} from '#shared/accounts/account-erasures.postgres.ts'
import { emailProof, signReceipt } from '#shared/accounts/erasure-receipt.ts'
import { deleteIdempotencyClaims } from '#shared/operations/idempotency.postgres.ts'
import { retireVaults } from '#shared/vault/delete/retire-vaults.postgres.ts'
import { refusal } from '#shared/core/refusal.ts'
import { idForPurpose } from '#shared/core/ids.ts'
import { countVault } from '#shared/vault/delete/delete-cleared.mongo.ts'
import type { Transaction, Postgres } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { AccountEraseJob } from '#shared/domain/job-payloads.ts'
import type { VaultIndexes } from '#shared/search/index/vault-indexes.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Config } from '#shared/core/config.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'

/** By then other processes have written the bills of their reads. */
const usageFlushMs = 10_000
const recheckSeconds = 15

/**
 * Erases an account. When this resolves its keys are refused, its memories are invisible, and its
 * organizations and credentials are deleted. Jobs remove the memories from both stores;
 * `finishAccountErasure` then signs the receipt.
 *
 * @param id the UUIDv7 of the request, and of the receipt
 * @throws Refusal `invalid` when `email` is not the account's.
 */
export async function eraseAccount(
  {
    postgres,
    queue,
    vaultIndexes,
    config,
  }: { postgres: Postgres; queue: Queue; vaultIndexes: VaultIndexes; config: Config },
  { account, keyHash }: { account: string; keyHash: Buffer },
  { id, email }: { id: string; email: string },
): Promise<AccountErasureRow> {
  const vaults = await postgres.transaction(async tx => {
    const lockedAccount = await lockAccount(tx, account)
    if (!lockedAccount || lockedAccount.email !== email.toLowerCase())
      throw refusal('invalid', 'otherEmail')
    const { vaults } = lockedAccount
    // The erasures of the vaults have derived ids: the id of the request is the account's erasure.
    const operation = idForPurpose(id, 'erase vaults')
    await retireVaults(tx, { queue }, { operation, account, keyHash, vaults })
    const counts = await anonymizeAccount(tx, account)
    const breakGlass = breakGlassHash(config, lockedAccount.email)
    // This secret outlives the account: sent again, the request is answered with the same receipt.
    if (breakGlass) await deleteIdempotencyClaims(tx.query, breakGlass, { except: id })
    await insertAccountErasure(tx, {
      id,
      account,
      proof: emailProof(id, lockedAccount.email),
      vaults,
      counts: { ...counts, vaults: vaults.length },
    })
    await scheduleErasureCheck(tx, queue, { operation: id, look: 0 })
    return vaults
  })
  for (const vault of vaults) vaultIndexes.forget(vault)
  return (await findAccountErasure(postgres.query, id))!
}

async function scheduleErasureCheck(
  tx: Transaction,
  queue: Pick<Queue, 'send'>,
  job: AccountEraseJob,
): Promise<void> {
  const id = idForPurpose(job.operation, `look ${job.look}`)
  const afterSeconds = job.look === 0 ? usageFlushMs / 1_000 : recheckSeconds
  await queue.send(tx, 'account-erase', [{ id, data: job, priority: 0, afterSeconds }])
}

/**
 * Ends an erasure whose vaults are empty: deletes the rows about the account's use and signs the receipt.
 * Where a vault is not empty it schedules another check in 15 seconds. Safe to run any number of times.
 *
 * @returns whether it has ended.
 * @throws Refusal `unavailable` when a store is out of reach.
 */
export async function finishAccountErasure(
  backend: Stores & { queue: Queue; config: Config; now: () => number },
  job: AccountEraseJob,
): Promise<boolean> {
  const { postgres, mongo, queue, config, now } = backend
  const erasure = await findAccountErasure(postgres.query, job.operation)
  if (!erasure || erasure.finishedAt) return true
  const { open, memories } = await readErasureProgress(postgres.query, erasure.account)
  if (open > 0 || !(await areEmpty(mongo, erasure.vaults))) {
    await postgres.transaction(tx =>
      scheduleErasureCheck(tx, queue, { ...job, look: job.look + 1 }),
    )
    return false
  }
  const records = await deleteAccountUse(postgres.query, erasure.account)
  const finishedAt = new Date(now())
  const receipt = signReceipt(config.masterKeys, {
    id: erasure.id,
    account: erasure.account,
    email_proof: erasure.proof,
    requested_at: erasure.requestedAt.toISOString(),
    finished_at: finishedAt.toISOString(),
    erased: { ...erasure.counts, memories, records },
    remaining: { empty_vault_ids: erasure.vaults.length, purged_after_days: 400 },
  })
  await saveErasureReceipt(postgres.query, erasure.id, { finishedAt, receipt })
  return true
}

async function areEmpty(mongo: Mongo, vaults: readonly string[]): Promise<boolean> {
  for (const vault of vaults) {
    if ((await countVault(mongo, vault)) > 0) return false
  }
  return true
}
