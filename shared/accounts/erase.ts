import { emailProof, signReceipt } from '#shared/accounts/receipt.ts'
import { retireVaults } from '#shared/vault/delete/retire.ts'
import { Refusal } from '#shared/core/errors.ts'
import { purposeIdOf } from '#shared/core/ids.ts'
import { countVault } from '#shared/vault/delete/cleared.mongo.ts'
import type { Transaction, Postgres } from '#shared/storage/postgres/connect.ts'
import {
  endAccount,
  endErasureOf,
  erasureProgress,
  findErasure,
  forgetAccountUse,
  holdAccount,
  insertErasure,
  type ErasureRow,
} from '#shared/accounts/receipts.postgres.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { AccountEraseJob } from '#shared/domain/job-payloads.ts'
import type { Images } from '#shared/search/index/vault-indexes.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Config } from '#shared/core/config.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'

/** Bills of reads that other processes have not written yet are there by then. */
const settledMs = 10_000
const lookAgainSeconds = 15

/**
 * Erases an account. When this resolves all its keys have stopped, nothing of it can be seen any more,
 * its organizations and credentials are gone, and what it remembered is removed from both stores by jobs;
 * `finishAccountErasure` then signs the receipt.
 *
 * @param id the UUIDv7 of the request, and of the receipt
 * @throws Refusal `invalid` when `email` is not the account's.
 */
export async function eraseAccount(
  { postgres, queue, images }: { postgres: Postgres; queue: Queue; images: Images },
  { account, keyHash }: { account: string; keyHash: Buffer },
  { id, email }: { id: string; email: string },
): Promise<ErasureRow> {
  const vaults = await postgres.transaction(async tx => {
    const held = await holdAccount(tx, account)
    if (!held || held.email !== email.toLowerCase()) throw notTheirs()
    const { vaults } = held
    // A vault each, so that the id of the request is left for the erasure itself.
    const operation = purposeIdOf(id, 'erase vaults')
    await retireVaults(tx, { queue }, { operation, account, keyHash, vaults })
    const counts = await endAccount(tx, account)
    await insertErasure(tx, {
      id,
      account,
      proof: emailProof(id, held.email),
      vaults,
      counts: { ...counts, vaults: vaults.length },
    })
    await promiseLook(tx, queue, { operation: id, look: 0 })
    return vaults
  })
  for (const vault of vaults) images.forget(vault)
  return (await findErasure(postgres.query, id))!
}

const notTheirs = (): Refusal =>
  new Refusal(
    'invalid',
    'email is not that of this account',
    'Send the email of the account, so that nothing is erased by mistake',
  )

async function promiseLook(
  tx: Transaction,
  queue: Pick<Queue, 'send'>,
  job: AccountEraseJob,
): Promise<void> {
  const id = purposeIdOf(job.operation, `look ${job.look}`)
  const afterSeconds = job.look === 0 ? settledMs / 1_000 : lookAgainSeconds
  await queue.send(tx, 'account-erase', [{ id, data: job, priority: 0, afterSeconds }])
}

/**
 * Ends an erasure whose vaults are empty: removes what is written down about the account's use, and
 * signs the receipt. When they are not, it is looked at again a little later. Any number of runs end it
 * once.
 *
 * @returns whether it has ended.
 * @throws Refusal `unavailable` when a store is out of reach.
 */
export async function finishAccountErasure(
  {
    postgres,
    mongo,
    queue,
    config,
    now,
  }: Stores & { queue: Queue; config: Config; now: () => number },
  job: AccountEraseJob,
): Promise<boolean> {
  const erasure = await findErasure(postgres.query, job.operation)
  if (!erasure || erasure.finishedAt) return true
  const { open, memories } = await erasureProgress(postgres.query, erasure.account)
  if (open > 0 || !(await areEmpty(mongo, erasure.vaults))) {
    await postgres.transaction(tx => promiseLook(tx, queue, { ...job, look: job.look + 1 }))
    return false
  }
  const records = await forgetAccountUse(postgres.query, erasure.account)
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
  await endErasureOf(postgres.query, erasure.id, { finishedAt, receipt })
  return true
}

async function areEmpty(mongo: Mongo, vaults: readonly string[]): Promise<boolean> {
  for (const vault of vaults) {
    if ((await countVault(mongo, vault)) > 0) return false
  }
  return true
}
