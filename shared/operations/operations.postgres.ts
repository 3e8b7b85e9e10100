import { insertFinishedDeliveries } from '#shared/operations/finished-deliveries.postgres.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import { lockVaultsOf } from '#shared/operations/vault-locks.postgres.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import {
  failedOutcome,
  statusOfOutcome,
  type OperationOutcome,
} from '#shared/domain/operation-outcome.ts'
import { Refusal } from '#shared/core/errors.ts'
import { sendDeliveryJobs } from '#shared/events/webhooks/delivery-job.ts'

export type OperationState = 'accepted' | 'running' | 'done' | 'failed' | 'cancelled'

/** Accepted work; its operation and its usage event share one id. */
export type NewOperation = {
  id: string
  account: string
  vault: string
  keyHash: Buffer
  kind: string
  /** A request waits for it. */
  awaited?: boolean
  session?: string | null
  /** Steps of the work, for its progress; 1 when it is done in one. */
  total?: number
  /** Running from the start: it cannot be cancelled. */
  started?: boolean
  /**
   * The usage event to write now; `at end`: `recordDeferredBill` writes one when the work ends, for what
   * it did; `never`: the work is free and does not count as a request.
   */
  billing: OperationUsage | 'at end' | 'never'
}

type OperationUsage = {
  /** Provider-prefixed; null where no model was called. */
  model: string | null
  inputTokens: number
  /** Those of the input tokens that a cache of the provider held. */
  cachedTokens?: number
  outputTokens: number
  memoryTokens: number
}

/** The state of the vault when the work was accepted. */
export type AcceptedOperation = {
  epoch: number
  sessionEpoch: number
  pending: number
  /** False when the operation existed before: nothing was written, and nothing is to be done. */
  fresh: boolean
}

/** NOTIFY channel for awaited operations that have ended; the payload is their ids, by comma. */
export const settledChannel = 'operations_settled'

/**
 * Writes operations, bills those that are billed now, and raises each vault's count of pending work, in
 * one statement. An operation that exists already stays as it is, with its bill. The caller holds the
 * locks of `lockVaults`.
 *
 * @returns one entry per operation, in order.
 */
export async function insertOperations(
  tx: Transaction,
  operations: readonly NewOperation[],
): Promise<AcceptedOperation[]> {
  const { rows } = await tx.query<AcceptedOperation>(
    `with item as (
       select * from json_to_recordset($1::json) as item(${operationItemColumns})
     ), ${acceptedSql}
     select epoch, pending, fresh, "sessionEpoch" from accepted order by n`,
    [JSON.stringify(operations.map(operationItem))],
    'operations.insert',
  )
  return rows
}

/**
 * SQL of `insertOperations`, for statements that do more: with-clauses that read a with-clause `item` of
 * `operationItem` and return `accepted`, one row of `AcceptedOperation` per item with its `n` and `id`.
 */
export const acceptedSql = `held as (
    select id, epoch, pending from vaults where id in (select vault from item)
  ), promised as (
    insert into operations (id, account, vault, key_hash, kind, epoch, awaited, session, progress_total,
                            state)
    select i.id, i.account, i.vault, decode(i.key_hash, 'hex'), i.kind, h.epoch, i.awaited, i.session,
           i.total, case when i.started then 'running' else 'accepted' end
    from item i join held h on h.id = i.vault
    on conflict (id) do nothing returning id, vault
  ), raised as (
    update vaults v set pending = pending + tally.n
    from (select vault, count(*)::int n from promised group by vault) tally
    where v.id = tally.vault returning v.id, v.pending
  ), billed as (
    insert into usage_events (id, account, vault, key_hash, kind, model, session,
                              input_tokens, cached_tokens, output_tokens, memory_tokens)
    select i.id, i.account, i.vault, decode(i.key_hash, 'hex'), i.kind, i.model, i.session,
           i.input_tokens, coalesce(i.cached_tokens, 0), i.output_tokens, i.memory_tokens
    from item i join promised p on p.id = i.id where i.billed
    on conflict (id) do nothing returning account, memory_tokens
  ), charged as (
    update accounts a set balance = balance - bill.tokens
    from (select account, sum(memory_tokens) tokens from billed group by account) bill
    where a.id = bill.account and a.balance is not null
  ), accepted as (
    select i.n, i.id, h.epoch, coalesce(r.pending, h.pending) as pending, p.id is not null as fresh,
           -- Postgres takes the items for a hundred and would read the sessions of all vaults for a join.
           coalesce((select s.epoch from sessions s
                     where s.vault = i.vault and s.session = i.session), 0) as "sessionEpoch"
    from item i join held h on h.id = i.vault
    left join raised r on r.id = i.vault
    left join promised p on p.id = i.id
  )`

/** The columns of `operationItem` for `json_to_recordset`. */
export const operationItemColumns = `n int, id uuid, account uuid, vault uuid, key_hash text, kind text,
  awaited boolean, session text, total int, started boolean, billed boolean, model text,
  input_tokens int, cached_tokens int, output_tokens int, memory_tokens int`

export function operationItem(operation: NewOperation, n: number) {
  const { billing } = operation
  const usage = typeof billing === 'object' ? billing : null
  return {
    n,
    id: operation.id,
    account: operation.account,
    vault: operation.vault,
    key_hash: operation.keyHash.toString('hex'),
    kind: operation.kind,
    awaited: operation.awaited ?? false,
    session: operation.session ?? null,
    total: operation.total ?? 1,
    started: operation.started ?? false,
    billed: usage !== null,
    model: usage?.model,
    input_tokens: usage?.inputTokens,
    cached_tokens: usage?.cachedTokens,
    output_tokens: usage?.outputTokens,
    memory_tokens: usage?.memoryTokens,
  }
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
 * Ends an operation with its outcome; see `settleOperations`.
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
  const [, { rows }] = await Promise.all([
    lockVaultsOf(tx, [id]),
    tx.query<{ id: string }>(
      `update operations set state = $4, finished_at = now(), status = $2, outcome = $3::jsonb,
              progress_done = case when $4 = 'done' then progress_total else progress_done end
       where id = $1 and state in ('accepted', 'running', 'failed') returning id`,
      [id, statusOfOutcome(outcome), JSON.stringify(outcome), state],
      'operations.finish',
    ),
  ])
  await settleOperations(tx, queue, rows.map(idOf))
  return rows.length === 1
}

/**
 * Ends operations whose last try failed; their jobs are kept in the dead-letter queue.
 *
 * @param error of that try: the outcome has the message of a Refusal, and of any other error nothing
 */
export async function failOperations(
  tx: Transaction,
  queue: Pick<Queue, 'send'>,
  ids: readonly string[],
  error?: unknown,
): Promise<void> {
  const outcome = error instanceof Refusal ? failedOutcome(error) : undefined
  const [, { rows }] = await Promise.all([
    lockVaultsOf(tx, ids),
    tx.query<{ id: string }>(
      `update operations set state = 'failed', finished_at = now(), status = $2, outcome = $3::jsonb
       where id = any($1::uuid[]) and state in ('accepted', 'running') returning id`,
      [ids, outcome && statusOfOutcome(outcome), outcome && JSON.stringify(outcome)],
    ),
  ])
  await settleOperations(tx, queue, rows.map(idOf))
}

/**
 * Marks accepted work as cancelled. The caller removes its job and its bill in the same transaction, and rolls back
 * when the job has begun.
 *
 * @returns false when it has begun or ended.
 */
export async function cancelAcceptedOperation(
  tx: Transaction,
  queue: Pick<Queue, 'send'> | null,
  account: string,
  id: string,
): Promise<boolean> {
  const [, { rows }] = await Promise.all([
    lockVaultsOf(tx, [id]),
    tx.query<{ id: string }>(
      `update operations set state = 'cancelled', finished_at = now()
       where id = $1 and account = $2 and state = 'accepted' returning id`,
      [id, account],
    ),
  ])
  await settleOperations(tx, queue, rows.map(idOf))
  return rows.length === 1
}

const idOf = ({ id }: { id: string }): string => id

/**
 * Follows operations that this transaction has ended: reduces the pending work of their vaults, notifies waiting
 * requests at the commit, and writes the messages to webhooks. The caller holds the locks of `lockVaultsOf`.
 *
 * @param queue null: the sweep sends the jobs of the messages
 * @param counted those that were pending; all, when missing
 */
export async function settleOperations(
  tx: Transaction,
  queue: Pick<Queue, 'send'> | null,
  ended: readonly string[],
  counted = ended,
): Promise<void> {
  if (ended.length === 0) return
  const [deliveries] = await Promise.all([
    insertFinishedDeliveries(tx, ended),
    tx.query(
      `update vaults v set pending = greatest(0, pending - tally.n)
       from (select vault, count(*)::int n from operations where id = any($1::uuid[]) group by vault) tally
       where v.id = tally.vault`,
      [counted],
      'operations.lower-pending',
    ),
    tx.query(
      `select pg_notify('${settledChannel}', id::text) from operations
       where id = any($1::uuid[]) and awaited`,
      [ended],
      'operations.notify',
    ),
  ])
  if (queue) await sendDeliveryJobs(tx, queue, deliveries)
}

/** The state of one operation of an account, or undefined when it has none of that id. */
export async function findOperationState(
  query: Query,
  account: string,
  id: string,
): Promise<OperationState | undefined> {
  const { rows } = await query<{ state: OperationState }>(
    'select state from operations where id = $1 and account = $2',
    [id, account],
    'operations.state',
  )
  return rows[0]?.state
}

/** Those of the operations that have not ended. */
export async function findOpenOperations(
  query: Query,
  vault: string,
  operations: readonly string[],
): Promise<string[]> {
  if (operations.length === 0) return []
  const { rows } = await query<{ id: string }>(
    `select id from operations
     where id = any($1::uuid[]) and vault = $2 and state in ('accepted', 'running', 'failed')`,
    [operations, vault],
    'operations.open',
  )
  return rows.map(({ id }) => id)
}
