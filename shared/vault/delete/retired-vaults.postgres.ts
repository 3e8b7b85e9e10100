import { clearedChannel } from '#shared/vault/base/erasures.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import { nextEpochSql } from '#shared/vault/base/vaults.postgres.ts'

/**
 * The last cleared epoch of a retired vault: all epochs are cleared. Work of a request that was authenticated
 * before the retirement may be accepted after it; the sweeps remove what it stores.
 */
export const epochMax = 2_147_483_647

/**
 * Makes everything in several vaults invisible at once and schedules its erasure. The commit notifies all
 * processes. Their keys lose their names, which may be people's. The rows of the vaults stay: bills refer to them. The caller has locked the vaults.
 */
export async function retireVaultRows(
  { query }: Transaction,
  vaults: readonly string[],
): Promise<void> {
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
 * Deletes data about the use of vaults: ended operations with their outcomes, 10,000 in one statement, names of
 * sessions, stored responses of Idempotency-Keys. Bills stay; the jobs that erase the vaults take the names of
 * sessions from them.
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
