import { visibleToAccountSql } from '#shared/operations/account-vaults.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'

const isoFormat = `'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'`

/** A message of a webhook, without a job yet. */
export type WrittenDelivery = { id: string; webhook: string }

/** Columns of an operation that `finishedDeliveriesSql` reads. */
export const finishedColumns = `o.id, o.account, o.vault, o.key_hash, o.kind, o.state, o.session,
  o.created_at, o.finished_at, o.awaited`

/** Writes the webhook messages `operation.finished` of operations that the transaction has ended. */
export async function insertFinishedDeliveries(
  { query }: Transaction,
  operations: readonly string[],
): Promise<WrittenDelivery[]> {
  const { rows } = await query<WrittenDelivery>(
    finishedDeliveriesSql('(select * from operations where id = any($1::uuid[]))'),
    [operations],
    'operations.deliveries',
  )
  return rows
}

/**
 * SQL of `insertFinishedDeliveries`, for the statement that finalizes stored memories: a statement of its own would
 * cost every such job a round trip. Nothing is written about the private vaults of members.
 *
 * @param ended a table of operations, or a with-clause that returns `finishedColumns`
 */
export const finishedDeliveriesSql = (ended: string): string =>
  `insert into webhook_deliveries (webhook, event, data)
   select w.id, 'operation.finished', jsonb_build_object(
     'operation_id', o.id, 'kind', o.kind, 'state', o.state, 'session_id', o.session,
     'key', coalesce((select masked from memory_keys where hash = o.key_hash), ''),
     'created_at', to_char(o.created_at at time zone 'UTC', ${isoFormat}),
     'finished_at', to_char(o.finished_at at time zone 'UTC', ${isoFormat}))
   from ${ended} o
   join webhooks w on w.account = o.account and w.disabled_at is null
     and 'operation.finished' = any(w.events)
   where ${visibleToAccountSql('o.vault')}
   returning id, webhook`

/** A column with the deliveries of a with-clause `deliveries`. */
export const deliveriesColumn = `coalesce(
  (select json_agg(json_build_object('id', id, 'webhook', webhook)) from deliveries), '[]') as deliveries`
