import { lockVaults } from '#shared/operations/vault-locks.postgres.ts'
import type { Postgres, Query, Transaction } from '#shared/storage/postgres/connect.ts'

/** The earliest expiry, in epoch milliseconds, of memories about to be written. */
export type ScheduledExpiry = {
  /** The id of the work that writes them; a second run replaces the schedule. */
  id: string
  vault: string
  expiresAt: number
}

/** Schedules the earliest expiry of memories before they are written, so that no reader misses it. */
export async function scheduleExpiries(
  postgres: Postgres,
  scheduled: readonly ScheduledExpiry[],
): Promise<void> {
  const vaults = [...new Set(scheduled.map(({ vault }) => vault))]
  if (vaults.length === 0) return
  // A statement that changes one row takes no second lock.
  if (vaults.length === 1) return insertSchedules(postgres.query, scheduled)
  await postgres.transaction(async tx => {
    await lockVaults(tx, vaults)
    await insertSchedules(tx.query, scheduled)
  })
}

async function insertSchedules(query: Query, scheduled: readonly ScheduledExpiry[]): Promise<void> {
  const items = scheduled.map(({ expiresAt, ...rest }) => ({
    ...rest,
    at: new Date(expiresAt).toISOString(),
  }))
  await query(
    `with item as (
       select * from jsonb_to_recordset($1::jsonb) as item(id uuid, vault uuid, at timestamptz)
     ), noted as (
       insert into announced_expiries (id, vault, expires_at) select id, vault, at from item
       on conflict (id) do update set vault = excluded.vault, expires_at = excluded.expires_at,
         announced_at = clock_timestamp()
     )
     update vaults v set next_expiry = least(v.next_expiry, first.at)
     from (select vault, min(at) as at from item group by vault) first
     where v.id = first.vault`,
    [JSON.stringify(items)],
    'expiries.insert-announced',
  )
}

/** Cancels the schedules of work that is finalized: its memories are found by their own expiry. */
export async function cancelScheduledExpiries(query: Query, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await query(
    'delete from announced_expiries where id = any($1::uuid[])',
    [ids],
    'expiries.withdraw',
  )
}

export type ExpiryState = {
  epoch: number
  revision: number
  pending: number
  /** Some memory may have expired by now. */
  due: boolean
  /** The time of this answer by the database's clock, in epoch milliseconds. */
  now: number
  /** The newest operation that purges expired memories; `running`: it has not ended. */
  last: string | null
  running: boolean
}

/** The expiry state of a vault; undefined when there is no such vault. */
export async function readExpiryState(
  query: Query,
  vault: string,
): Promise<ExpiryState | undefined> {
  const { rows } = await query<ExpiryState>(
    `select v.epoch, v.revision, v.pending, coalesce(v.next_expiry <= clock_timestamp(), false) as due,
            floor(extract(epoch from clock_timestamp()) * 1000)::bigint as now,
            o.id as last, coalesce(o.state in ('accepted', 'running'), false) as running
     from vaults v
     left join lateral (
       select id, state from operations where vault = v.id and kind = 'expire'
       order by id desc limit 1
     ) o on true
     where v.id = $1`,
    [vault],
    'expiries.standing',
  )
  return rows[0]
}

/** No job runs longer: work scheduled before has written its memories, or its process has died. */
const scheduledMinutesMax = 15

/**
 * Sets the next expiry of a vault after a scan of its memories. Scheduled work counts too; where it is overdue,
 * the next scan is a second away. The caller holds the vault's lock (`lockVault`).
 *
 * @param earliest in epoch milliseconds; null when no memory expires
 * @returns false, with nothing written, when the vault has changed since the scan.
 */
export async function putNextExpiry(
  { query }: Transaction,
  vault: string,
  { revision, earliest }: { revision: number; earliest: number | null },
): Promise<boolean> {
  const { rowCount } = await query(
    `with over as (
       delete from announced_expiries
       where vault = $1 and announced_at < clock_timestamp() - make_interval(mins => $4)
     )
     update vaults set next_expiry = least($3, (
       select min(case when expires_at > clock_timestamp() then expires_at
                       else clock_timestamp() + interval '1 second' end)
       from announced_expiries
       where vault = $1 and announced_at >= clock_timestamp() - make_interval(mins => $4)))
     where id = $1 and revision = $2`,
    [vault, revision, earliest === null ? null : new Date(earliest), scheduledMinutesMax],
    'expiries.put',
  )
  return rowCount === 1
}

/** Vaults with expired memories, earliest expiry first. */
export async function vaultsWithExpired(query: Query, limit: number): Promise<string[]> {
  const { rows } = await query<{ id: string }>(
    `select id from vaults where next_expiry <= clock_timestamp() order by next_expiry limit $1`,
    [limit],
    'expiries.due',
  )
  return rows.map(({ id }) => id)
}

/** The account of a vault and its oldest active key; undefined when it has no key. */
export async function findVaultOwner(
  query: Query,
  vault: string,
): Promise<{ account: string; keyHash: Buffer } | undefined> {
  const { rows } = await query<{ account: string; keyHash: Buffer }>(
    `select account, hash as "keyHash" from memory_keys where vault = $1
     order by revoked_at is not null, created_at limit 1`,
    [vault],
    'expiries.holder',
  )
  return rows[0]
}

/** The retention of a vault's account, in days; null: none. */
export async function findVaultRetention(query: Query, vault: string): Promise<number | null> {
  const { rows } = await query<{ days: number | null }>(
    `select a.retention_days as days from vaults v join accounts a on a.id = v.account
     where v.id = $1`,
    [vault],
    'expiries.retention',
  )
  return rows[0]?.days ?? null
}
