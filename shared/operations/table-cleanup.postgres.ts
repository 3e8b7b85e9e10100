import type { Query } from '#shared/storage/postgres/connect.ts'

/** Rows that one statement removes at most; the rest is for the next run. */
const batchMax = 10_000

/** Deletes stored responses after a day. @returns how many. */
export async function dropOldResponses(query: Query): Promise<number> {
  // A request that began before its row was written may be sent again a little later than it was done.
  await deleteBatch(query, `policy_removals where created_at < now() - interval '25 hours'`)
  return deleteBatch(query, `idempotency where created_at < now() - interval '24 hours'`)
}

/**
 * Deletes operations 30 days after their end. Failed ones are kept as long as their dead letters
 * can be retried. @returns how many.
 */
export const dropOldOperations = (query: Query): Promise<number> =>
  deleteBatch(
    query,
    `operations where (state <> 'failed' and finished_at < now() - interval '30 days')
       or finished_at < now() - interval '400 days'`,
  )

async function deleteBatch(query: Query, from: string): Promise<number> {
  const [table] = from.split(' ')
  const { rowCount } = await query(
    `delete from ${table} where ctid = any(array(select ctid from ${from} limit ${batchMax}))`,
  )
  return rowCount
}

/** The start of the walk. */
const nilUuid = '00000000-0000-0000-0000-000000000000'

/** Vaults visited in one run: ten million take a day and a half. */
const vaultsMax = 5_000

/**
 * Newest changes of a vault that stay in its log, so that an index that was idle for days can catch
 * up.
 */
const changesKept = 1_000

/**
 * Trims the change logs of the next page of vaults: changes older than a day are deleted, except
 * for the newest 1,000 revisions. An index older than the log is loaded again.
 *
 * @returns how many changes were deleted.
 */
export async function trimVaultChanges(query: Query): Promise<number> {
  const { rows } = await query<{ trimmed: number }>(
    `with page as (
       select id, revision from vaults
       where id > coalesce((select after from sweep_positions where sweep = 'changes'), $3)
       order by id limit $1
     ), moved as (
       insert into sweep_positions (sweep, after)
       select 'changes', case when count(*) < $1 then $3 else (array_agg(id order by id desc))[1] end
       from page
       on conflict (sweep) do update set after = excluded.after
     ), trimmed as (
       delete from vault_changes c using page p
       where c.vault = p.id and c.revision <= p.revision - $2 and c.at < now() - interval '1 day'
       returning 1
     )
     select count(*) as trimmed from trimmed`,
    [vaultsMax, changesKept, nilUuid],
    'leftovers.changes',
  )
  return rows[0]!.trimmed
}

/** Looking for their jobs takes 10 microseconds each. */
const unfinishedMax = 10_000

/** The next page of operations accepted more than `minutes` ago and not ended; they are walked round. */
export async function unfinishedOperationsPage(query: Query, minutes: number): Promise<string[]> {
  const { rows } = await query<{ id: string }>(
    `with page as (
       select id from operations
       where state in ('accepted', 'running') and created_at < now() - make_interval(mins => $1)
         and id > coalesce((select after from sweep_positions where sweep = 'unfinished'), $3)
       order by id limit $2
     ), moved as (
       insert into sweep_positions (sweep, after)
       select 'unfinished',
              case when count(*) < $2 then $3 else (array_agg(id order by id desc))[1] end
       from page
       on conflict (sweep) do update set after = excluded.after
     )
     select id from page`,
    [minutes, unfinishedMax, nilUuid],
    'leftovers.unfinished',
  )
  return rows.map(({ id }) => id)
}
