import { toldVaultSql } from '#shared/operations/account-vaults.postgres.ts'
import {
  deliveriesColumn,
  finishedColumns,
  finishedDeliveriesSql,
  type WrittenDelivery,
} from '#shared/operations/finished-deliveries.postgres.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import { sendDeliveryJobs } from '#shared/events/webhooks/delivery-job.ts'
import {
  statusOfOutcome,
  type OperationOutcome,
  type StoredOutcome,
} from '#shared/domain/operation-outcome.ts'
import { lockVaultsOf } from '#shared/operations/vault-locks.postgres.ts'
import { takeBackRolledUsageSql } from '#shared/operations/taken-back-usage.postgres.ts'
import { settledChannel, type OperationState } from '#shared/operations/operations.postgres.ts'

export type OperationRow = {
  id: string
  kind: string
  state: OperationState
  /** The key of the request, masked. */
  key: string
  session: string | null
  done: number
  total: number
  createdAt: Date
  finishedAt: Date | null
  outcome: StoredOutcome | null
}

const columns = `o.id, o.kind, o.state, coalesce(k.masked, '') as key, o.session,
  o.progress_done as done, o.progress_total as total, o.created_at as "createdAt",
  o.finished_at as "finishedAt",
  case when o.status is not null then jsonb_build_object('status', o.status, 'value', o.outcome) end
    as outcome`

/** Which operations of an account are visible. */
export type OperationScope = {
  account: string
  /** Only those of this vault; null for all of the account itself, without its members'. */
  vault: string | null
}

const visibleCondition = `(o.vault = $2 or $2::uuid is null and ${toldVaultSql('o.vault')})`

/** One visible operation, or undefined. */
export async function findVisibleOperation(
  query: Query,
  { account, vault }: OperationScope,
  id: string,
): Promise<OperationRow | undefined> {
  const { rows } = await query<OperationRow>(
    `select ${columns} from operations o left join memory_keys k on k.hash = o.key_hash
     where o.account = $1 and ${visibleCondition} and o.id = $3`,
    [account, vault, id],
    'operations.find-seen',
  )
  return rows[0]
}

/** One operation of an account, or undefined. */
export async function findOperation(
  query: Query,
  account: string,
  id: string,
): Promise<OperationRow | undefined> {
  const { rows } = await query<OperationRow>(
    `select ${columns} from operations o left join memory_keys k on k.hash = o.key_hash
     where o.account = $1 and o.id = $2`,
    [account, id],
    'operations.find',
  )
  return rows[0]
}

export type OperationFilter = {
  state: OperationState | undefined
  kind: string | undefined
  /** Only operations older than this id. */
  before: string | undefined
  limit: number
}

/** No page scans more operations than this: rare ones may be on a later page. */
const scannedMax = 10_000

/** After every id. */
const uuidMax = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/**
 * Visible operations, newest first.
 *
 * @returns a page, and the id it reached: null when there is nothing older.
 */
export async function listOperations(
  query: Query,
  { account, vault }: OperationScope,
  { state, kind, before, limit }: OperationFilter,
): Promise<{ rows: OperationRow[]; after: string | null }> {
  // A statement for each: one with a vault that may be null would walk the operations of the account.
  const ofVault = vault === null ? '' : 'and o.vault = $2'
  type Row = OperationRow & { looked: number; oldest: string }
  const { rows } = await query<Row | (Record<keyof OperationRow, null> & Row)>(
    `with looked as (
       select o.id, o.vault, o.state, o.kind from operations o
       where o.account = $1 ${ofVault} and o.id < $5::uuid order by o.id desc limit ${scannedMax}
     ), page as (
       select o.id from looked o
       where ${visibleCondition}
         and ($3::text is null or o.state = $3) and ($4::text is null or o.kind = $4)
       order by o.id desc limit $6
     )
     select ${columns}, l.n as looked, l.oldest
     from (select count(*)::int as n, (array_agg(id order by id))[1] as oldest from looked) l
     left join (page p join operations o on o.id = p.id
                left join memory_keys k on k.hash = o.key_hash) on true
     order by o.id desc`,
    [account, vault, state ?? null, kind ?? null, before ?? uuidMax, limit + 1],
    vault === null ? 'operations.list-of-account' : 'operations.list-of-vault',
  )
  const { looked, oldest } = rows[0]!
  const found = rows
    .filter(({ id }) => id !== null)
    .map(({ looked: _looked, oldest: _oldest, ...row }) => row)
  const page = found.slice(0, limit)
  if (found.length > limit) return { rows: page, after: page.at(-1)!.id }
  return { rows: page, after: looked === scannedMax ? oldest : null }
}

/** Records that work has started or advanced; never backwards, and never after its end. */
export async function reportProgress(
  query: Query,
  id: string,
  { done, total }: { done: number; total?: number },
): Promise<void> {
  await query(
    `update operations set state = 'running', progress_done = greatest(progress_done, $2),
            progress_total = coalesce($3, progress_total)
     where id = $1 and state in ('accepted', 'running')`,
    [id, done, total ?? null],
    'operations.progress',
  )
}

/**
 * Ends an operation with its outcome, and reduces its vault's count of pending work. Waiting
 * requests are notified when the transaction commits.
 *
 * @param state `cancelled` for work that was stopped while it ran
 * @returns false when it had ended before: the caller's effects must not count twice.
 */
export async function finishOperation(
  tx: Transaction,
  queue: Pick<Queue, 'send'>,
  id: string,
  outcome: OperationOutcome,
  state: 'done' | 'cancelled' = 'done',
): Promise<boolean> {
  await lockVaultsOf(tx, [id])
  const { rows } = await tx.query<{ ended: number; deliveries: WrittenDelivery[] }>(
    `with ended as (
       update operations o set state = $4, finished_at = now(), status = $2, outcome = $3::jsonb,
              progress_done = case when $4 = 'done' then progress_total else progress_done end
       where id = $1 and state in ('accepted', 'running', 'failed') returning ${finishedColumns}
     ), deliveries as (
       ${finishedDeliveriesSql('ended')}
     ), lowered as (
       update vaults set pending = greatest(0, pending - 1) where id = (select vault from ended)
     ), told as (
       select pg_notify('${settledChannel}', id::text) from ended where awaited
     )
     select (select count(*)::int from ended) as ended, (select count(*) from told) as told,
            ${deliveriesColumn}`,
    [id, statusOfOutcome(outcome), JSON.stringify(outcome), state],
    'operations.finish',
  )
  const { ended, deliveries } = rows[0]!
  await sendDeliveryJobs(tx, queue, deliveries)
  return ended === 1
}

/**
 * Marks accepted work as cancelled and takes its bill back. The caller removes its job in the same
 * transaction, and rolls back when the job has begun.
 */
export async function cancelAcceptedOperation(
  tx: Transaction,
  queue: Pick<Queue, 'send'> | null,
  account: string,
  id: string,
): Promise<boolean> {
  await lockVaultsOf(tx, [id])
  // Another vault of the account may take its bill out of the same sum.
  await tx.query('select id from accounts where id = $1 for no key update', [account])
  const { rows } = await tx.query<{ cancelled: number; deliveries: WrittenDelivery[] }>(
    `with cancelled as (
       update operations o set state = 'cancelled', finished_at = now()
       where id = $1 and account = $2 and state = 'accepted' returning ${finishedColumns}
     ), deliveries as (
       ${finishedDeliveriesSql('cancelled')}
     ), lowered as (
       update vaults set pending = greatest(0, pending - 1)
       where id = (select vault from cancelled)
     ), unbilled as (
       delete from usage_events where id = (select id from cancelled) returning *
     ), returned as (
       update accounts a set balance = balance + u.memory_tokens
       from unbilled u where a.id = u.account and a.balance is not null
     ), ${takeBackRolledUsageSql('unbilled')}
     select (select count(*)::int from cancelled) as cancelled, ${deliveriesColumn}`,
    [id, account],
  )
  const { cancelled, deliveries } = rows[0]!
  if (queue) await sendDeliveryJobs(tx, queue, deliveries)
  return cancelled === 1
}
