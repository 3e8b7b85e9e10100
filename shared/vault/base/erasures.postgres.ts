import { lockVaultsOf } from '#shared/operations/vault-locks.postgres.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import { settleOperations, type OperationState } from '#shared/operations/operations.postgres.ts'
import type { ClearedRange } from '#shared/domain/job-payloads.ts'

/** NOTIFY channel of cleared vaults: every process drops their indexes. */
export const clearedChannel = 'vaults_cleared'

/** Notifies every process when the transaction commits. */
export async function notifyCleared({ query }: Transaction, vault: string): Promise<void> {
  await query('select pg_notify($1, $2)', [clearedChannel, vault], 'erasures.tell')
}

/** Routes whose stored responses (for Idempotency-Keys) contain memories. */
export const routesShowingMemories = [
  ...['search', 'prepare', 'inspect', 'date-search', 'consolidate/checkout'].map(
    name => `POST /v1/memory/${name}`,
  ),
  // The answer of a model is part of the stored exchange.
  ...['chat/completions', 'messages', 'models', 'responses'].map(name => `POST /v1/${name}`),
]

/** Copy routes: the stored responses of previews contain memories, those of copies their queries. */
const copyRoutes = ['transfer', 'graft'].map(name => `POST /v1/memory/${name}`)

/** Deletes stored responses that contain memories of a vault; sent again, such requests run again. */
export async function deleteStoredResponses(
  { query }: Transaction,
  vault: string,
  { ofCopies }: { ofCopies: 'previews' | 'all' },
): Promise<void> {
  await query(
    `delete from idempotency i
     where key_hash in (select hash from memory_keys where vault = $1)
       and (route = any($2) or (route = any($3)
            and ($4 or not exists (select from operations o where o.id = i.operation))))`,
    [vault, routesShowingMemories, copyRoutes, ofCopies === 'all'],
    'erasures.answers',
  )
}

/** Deletes the sessions of a vault whose own epoch was raised, with their names. */
export async function deleteSessions({ query }: Transaction, vault: string): Promise<void> {
  await query('delete from sessions where vault = $1', [vault], 'erasures.sessions')
}

/** The state of an operation and its number of steps; undefined when there is none of that id. */
export async function findOperationStatus(
  query: Query,
  operation: string,
): Promise<{ state: OperationState; total: number } | undefined> {
  const { rows } = await query<{ state: OperationState; total: number }>(
    'select state, progress_total as total from operations where id = $1',
    [operation],
    'erasures.standing',
  )
  return rows[0]
}

/** Cancels operations that a clearing has made void and whose jobs are deleted; lowers `pending`. */
export async function cancelClearedOperations(
  tx: Transaction,
  queue: Pick<Queue, 'send'> | null,
  operations: readonly string[],
): Promise<void> {
  if (operations.length === 0) return
  await lockVaultsOf(tx, operations)
  const { rows } = await tx.query<{ id: string; wasPending: boolean }>(
    `with void as (
       select id, state <> 'failed' as pending from operations
       where id = any($1::uuid[]) and state in ('accepted', 'running', 'failed') for no key update
     )
     update operations o set state = 'cancelled', finished_at = now()
     from void v where o.id = v.id returning o.id, v.pending as "wasPending"`,
    [operations],
  )
  const pending = rows.filter(({ wasPending }) => wasPending)
  const idsOf = (ended: typeof rows): string[] => ended.map(({ id }) => id)
  await settleOperations(tx, queue, idsOf(rows), idsOf(pending))
}

/** Deletes accepted files of a cleared range. @returns their operations. */
export async function dropClearedFiles(
  { query }: Transaction,
  { vault, session, upTo, vaultEpoch }: ClearedRange,
): Promise<string[]> {
  const { rows } = await query<{ operation: string }>(
    `delete from long_operations
     where vault = $1 and operation is not null and kind in ('upload', 'import')
       and case when $2::text is null then epoch <= $3
                else request->>'session' = $2 and epoch <= $4
                     and coalesce((request->'sessionEpochs'->>$2)::int, 0) <= $3 end
     returning operation`,
    [vault, session, upTo, vaultEpoch],
  )
  return rows.map(({ operation }) => operation)
}

/** Deletes the leases on batches of a cleared range. */
export async function dropClearedLeases(
  { query }: Transaction,
  { vault, session, upTo }: ClearedRange,
): Promise<void> {
  if (session !== null) return
  await query('delete from leases where vault = $1 and epoch <= $2', [vault, upTo])
}

/**
 * Records a clearing before it is erased: one row per partition. A clearing of the vault replaces those of its
 * sessions.
 */
export async function beginErasure(
  { query }: Transaction,
  { vault, session, upTo }: ClearedRange,
): Promise<void> {
  await query(
    `with covered as (
       delete from erasures where vault = $1 and $2 = '' and session <> ''
     )
     insert into erasures (vault, session, up_to, due_at) values ($1, $2, $3, 'infinity')
     on conflict (vault, session) do update
       set up_to = excluded.up_to, cleared_at = now(), due_at = excluded.due_at`,
    [vault, session ?? '', upTo],
    'erasures.begin',
  )
}

/** Records that a clearing is erased; from now on sweeps remove what jobs store into it late. */
export async function endErasure(
  { query }: Transaction,
  { vault, session, upTo }: ClearedRange,
): Promise<void> {
  await query(
    `update erasures set due_at = least(due_at, now() + interval '1 minute')
     where vault = $1 and session = $2 and up_to = $3`,
    [vault, session ?? '', upTo],
    'erasures.end',
  )
}

/** Sessions that are cleared and not yet erased: their remaining memories do not count. */
export async function sessionsToErase(
  query: Query,
  vault: string,
): Promise<{ session: string; upTo: number }[]> {
  const { rows } = await query<{ session: string; upTo: number }>(
    `select session, up_to as "upTo" from erasures
     where vault = $1 and session <> '' and due_at = 'infinity'`,
    [vault],
    'erasures.sessions-to-erase',
  )
  return rows
}

/**
 * Clearings to sweep now, longest due first. `vaultEpoch` is also that of listed sessions: clearing the vault
 * removes their rows.
 */
export async function dueErasures(query: Query, limit: number): Promise<ClearedRange[]> {
  const { rows } = await query<ClearedRange>(
    `select e.vault, nullif(e.session, '') as session, 0 as "from", e.up_to as "upTo",
            v.epoch as "vaultEpoch"
     from erasures e join vaults v on v.id = e.vault
     where e.due_at <= now() order by e.due_at limit $1`,
    [limit],
    'erasures.due',
  )
  return rows
}

/** No job lives longer: payloads are deleted after a year. */
const tombstoneRetentionDays = 400

/**
 * Schedules the next sweep after as much time again as has passed since the clearing. Deletes the row after 400
 * days.
 */
export async function postponeErasure(
  query: Query,
  { vault, session, upTo }: ClearedRange,
): Promise<void> {
  await query(
    `with over as (
       delete from erasures where vault = $1 and session = $2 and up_to = $3
         and cleared_at < now() - make_interval(days => $4)
     )
     update erasures set due_at = now() + greatest(now() - cleared_at, interval '1 minute')
     where vault = $1 and session = $2 and up_to = $3
       and cleared_at >= now() - make_interval(days => $4)`,
    [vault, session ?? '', upTo, tombstoneRetentionDays],
    'erasures.postpone',
  )
}

/** Records that a vault has tombstones of today. */
export async function recordTombstoneDay({ query }: Transaction, vault: string): Promise<void> {
  await query(
    `insert into tombstone_days (day, vault) values ((now() at time zone 'utc')::date, $1)
     on conflict do nothing`,
    [vault],
    'tombstone-days.insert',
  )
}

export type TombstoneDay = { vault: string; day: string; before: Date }

/** Days with tombstones 400 days ago or longer, oldest first; `before`: the end of the day in UTC. */
export async function oldTombstoneDays(query: Query, limit: number): Promise<TombstoneDay[]> {
  const { rows } = await query<TombstoneDay>(
    `select vault, day::text, (day + 1)::timestamp at time zone 'utc' as before from tombstone_days
     where day < (now() at time zone 'utc')::date - $2::int order by day limit $1`,
    [limit, tombstoneRetentionDays],
  )
  return rows
}

export async function deleteTombstoneDay(
  query: Query,
  { vault, day }: TombstoneDay,
): Promise<void> {
  await query('delete from tombstone_days where vault = $1 and day = $2', [vault, day])
}
