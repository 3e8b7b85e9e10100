import { budgetKeysSql } from '#shared/access/rate-limit/rate-limit-store.postgres.ts'
import { copyIdOf } from '#shared/core/ids.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import { acceptOperations } from '#shared/operations/accept-operations.ts'
import { lockManyVaults } from '#shared/operations/vault-locks.postgres.ts'
import type { ClearJob } from '#shared/domain/job-payloads.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import { clearedChannel } from '#shared/vault/base/erasures.postgres.ts'
import { nextEpochSql } from '#shared/vault/base/vaults.postgres.ts'

type Retirement = {
  /** The UUIDv7 of the request: the first erasure runs under it, others under ids derived from it. */
  operation: string
  /** The owner of the vaults; their erasures are among its operations. */
  account: string
  /** The hash of the key of the request. */
  keyHash: Buffer
  vaults: readonly string[]
}

/** So that no statement is long, whatever an account has: 1,000 vaults take about 0.3 s. */
const vaultsMax = 1_000

/**
 * Retires vaults: no process can see their memories after the commit, whose jobs remove them from both stores.
 * Call it before the keys are deleted, and `vaultIndexes.forget` for each vault afterwards.
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

/** The last cleared epoch of a retired vault: all. The sweeps remove what late work stores. */
const epochMax = 2_147_483_647

/**
 * Makes everything in several vaults invisible and schedules its erasure. Their keys lose their names. The rows
 * of the vaults stay: bills refer to them. The caller has locked the vaults.
 */
async function retireVaultRows({ query }: Transaction, vaults: readonly string[]): Promise<void> {
  await query(
    `with raised as (
       update vaults v set epoch = ${nextEpochSql('v.epoch')}, revision = revision + 1, external_id = null, raw_units = 0, raw_tokens = 0,
              tier2_count = 0, tier2_importance = 0, tier2_tokens = 0
       where v.id = any($1::uuid[]) returning v.id
     ), unlogged as (
       delete from vault_changes where vault = any($1::uuid[])
     ), nameless as (
       update memory_keys set name = masked where vault = any($1::uuid[])
     ), unnamed as (
       delete from sessions where vault = any($1::uuid[])
     ), disconnected as (
       delete from applications where vault = any($1::uuid[])
     ), untagged as (
       delete from shared_tag_sets where vault = any($1::uuid[])
     ), covered as (
       delete from erasures where vault = any($1::uuid[]) and session <> ''
     ), remembered as (
       insert into erasures (vault, session, up_to, due_at)
       select id, '', $2, 'infinity' from raised
       on conflict (vault, session) do update
         set up_to = excluded.up_to, cleared_at = now(), due_at = excluded.due_at
     ), told as (
       select pg_notify('${clearedChannel}', id::text) from raised
     )
     -- A select in a with-clause runs only when it is read: the count is what sends the notifications.
     select count(*) from told`,
    [vaults, epochMax],
    'vaults.retire',
  )
}

const operationsMax = 10_000

/**
 * Deletes data about the use of vaults: ended operations, 10,000 in one statement, names of sessions, stored
 * responses. Bills stay; the jobs that erase the vaults take the names of sessions from them.
 */
export async function deleteVaultUse(
  { query }: Transaction,
  vaults: readonly string[],
): Promise<void> {
  // The purge of old operations may take some of those that were picked: only nothing is the end.
  for (let removed = 1; removed > 0;) {
    ;({ rowCount: removed } = await query(
      `delete from operations where id = any(array(
         select id from operations
         where vault = any($1::uuid[]) and state not in ('accepted', 'running', 'failed')
         limit ${operationsMax}))`,
      [vaults],
    ))
  }
  await query(
    `with unnamed as (
       update operations set session = null, outcome = null, status = null
       where vault = any($1::uuid[]) and state in ('accepted', 'running', 'failed')
     )
     delete from idempotency
     where key_hash in (select hash from memory_keys where vault = any($1::uuid[]))`,
    [vaults],
  )
  await query(
    `delete from budget_points where key in (${budgetKeysSql('vault = any($1::uuid[])')})`,
    [vaults],
  )
}

/** Every key that each vault has had, as hashes in hex. */
export async function listKeysOfVaults(
  { query }: Transaction,
  vaults: readonly string[],
): Promise<Map<string, string[]>> {
  const { rows } = await query<{ vault: string; keys: string[] }>(
    `select vault, array_agg(encode(hash, 'hex')) as keys from memory_keys
     where vault = any($1::uuid[]) group by vault`,
    [vaults],
  )
  return new Map(rows.map(({ vault, keys }) => [vault, keys]))
}
