import type {
  StoredSession,
  UnconsolidatedTotals,
} from '#shared/vault/restore/after-restore.mongo.ts'
import { adjustTagSetCounts } from '#shared/vault/base/tag-sets.postgres.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'

/** A page of all vaults, ordered by id; in an `unused` one nothing was ever stored, by the data of Postgres. */
export async function listVaultsPage(
  query: Query,
  after: string,
  limit: number,
): Promise<{ id: string; unused: boolean }[]> {
  const { rows } = await query<{ id: string; unused: boolean }>(
    'select id, revision = 0 as unused from vaults where id > $1 order by id limit $2',
    [after, limit],
    'after-restore.vaults',
  )
  return rows
}

/** A vault by the restored data of Postgres. */
export type RestoredVault = {
  epoch: number
  /** The shared vault of an organization: it has no debt, and its tag sets are counted. */
  shared: boolean
  retired: boolean
  debt: UnconsolidatedTotals
  sessions: Record<string, number>
  /** Accepted exchanges that are not settled: their memories are counted when they are. */
  exchanges: string[]
  /** Other operations are under way that will change the debt or the tag counts. */
  busy: boolean
}

/** Reads a vault, which the transaction must have locked. */
export async function readRestoredVault(
  { query }: Transaction,
  vault: string,
): Promise<RestoredVault> {
  const { rows } = await query<RestoredVault>(
    `select v.epoch, exists (select from orgs where vault = v.id) as shared,
            exists (
              select from erasures where vault = v.id and session = '' and up_to >= v.epoch
            ) as retired,
            json_build_object('rawUnits', v.raw_units, 'rawTokens', v.raw_tokens,
              'tier2Count', v.tier2_count, 'tier2Importance', v.tier2_importance,
              'tier2Tokens', v.tier2_tokens) as debt,
            coalesce((select jsonb_object_agg(session, epoch) from sessions where vault = v.id), '{}')
              as sessions,
            coalesce((select array_agg(id) from operations
                      where vault = v.id and kind in ('ingest', 'proxy')
                        and state in ('accepted', 'running', 'failed')), '{}') as exchanges,
            exists (select from operations where vault = v.id and kind not in ('ingest', 'proxy')
                      and state in ('accepted', 'running'))
            or exists (select from long_operations l join operations o on o.id = l.operation
                       where l.vault = v.id and o.state in ('accepted', 'running'))
            or exists (select from leases where vault = v.id and state = 'committing')
            or exists (select from shared_writes where vault = v.id and state = 'pending') as busy
     from vaults v where v.id = $1`,
    [vault],
    'after-restore.put-back',
  )
  return rows[0]!
}

/** A vault by the data of MongoDB. */
export type InspectedVault = {
  epoch: number
  /** MongoDB has a later epoch, so the sessions in Postgres are of an earlier one. */
  isEpochRaised: boolean
  debt: UnconsolidatedTotals
  sessions: readonly StoredSession[]
  /** Null when they were not counted. */
  tagSets: readonly { tagSet: string; memories: number }[] | null
  /** Epoch milliseconds, or null. */
  nextExpiry: number | null
  tombstoneDays: readonly string[]
}

/**
 * Sets a vault in Postgres to what MongoDB has. Its revision becomes one that it never had, so that every index
 * is loaded again, and it is checked for memories without a vector of its embedding model.
 */
export async function repairVault(
  { query }: Transaction,
  vault: string,
  inspected: InspectedVault,
): Promise<void> {
  const { debt, nextExpiry } = inspected
  await query(
    `update vaults set epoch = $2,
            revision = greatest(revision + 1, floor(extract(epoch from clock_timestamp()) * 1000)::bigint),
            raw_units = $3, raw_tokens = $4, tier2_count = $5, tier2_importance = $6, tier2_tokens = $7,
            next_expiry = least(next_expiry, $8), moved_at = now(), look_at = now()
     where id = $1`,
    [
      vault,
      inspected.epoch,
      debt.rawUnits,
      debt.rawTokens,
      debt.tier2Count,
      debt.tier2Importance,
      debt.tier2Tokens,
      nextExpiry === null ? null : new Date(nextExpiry),
    ],
  )
  await query('delete from vault_changes where vault = $1', [vault])
  await query('delete from index_snapshots where vault = $1', [vault])
  await query('update orgs set space = null where vault = $1', [vault])
  if (inspected.isEpochRaised) {
    await query('delete from sessions where vault = $1', [vault])
    await query(`delete from erasures where vault = $1 and session <> ''`, [vault])
    await query('delete from leases where vault = $1 and epoch < $2', [vault, inspected.epoch])
  }
  await upsertSessions({ query }, vault, inspected.sessions)
  await query(
    `insert into tombstone_days (day, vault) select day, $1 from unnest($2::date[]) as item(day)
     on conflict do nothing`,
    [vault, inspected.tombstoneDays],
  )
  if (inspected.tagSets) await replaceTagSets({ query }, vault, inspected.tagSets)
}

async function upsertSessions(
  { query }: Transaction,
  vault: string,
  sessions: readonly StoredSession[],
): Promise<void> {
  await query(
    `insert into sessions as s (vault, session, epoch, stored_at)
     select $1, session, epoch, stored_at
     from unnest($2::text[], $3::int[], $4::timestamptz[]) as item(session, epoch, stored_at)
     on conflict (vault, session) do update
       set epoch = greatest(s.epoch, excluded.epoch),
           stored_at = case when excluded.epoch >= s.epoch
                            then greatest(s.stored_at, excluded.stored_at) else s.stored_at end`,
    [
      vault,
      sessions.map(({ session }) => session),
      sessions.map(({ epoch }) => epoch),
      sessions.map(({ storedAt }) => storedAt),
    ],
  )
}

async function replaceTagSets(
  tx: Transaction,
  vault: string,
  tagSets: readonly { tagSet: string; memories: number }[],
): Promise<void> {
  await tx.query('delete from shared_tag_sets where vault = $1', [vault])
  const counts = new Map(tagSets.map(({ tagSet, memories }) => [tagSet, memories]))
  await adjustTagSetCounts(tx, vault, counts)
}

/** Schedules sweeps of the epochs before this one, of a vault or of one of its sessions. */
export async function scheduleEarlierErasure(
  { query }: Transaction,
  { vault, session, epoch }: { vault: string; session: string | null; epoch: number },
): Promise<void> {
  await query(
    `insert into erasures as e (vault, session, up_to, due_at) values ($1, $2, $3, now())
     on conflict (vault, session) do update
       set up_to = greatest(e.up_to, excluded.up_to), due_at = least(e.due_at, excluded.due_at)`,
    [vault, session ?? '', epoch - 1],
  )
}
