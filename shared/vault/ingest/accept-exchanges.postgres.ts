import { insertJsonBytes, JsonBytes } from '#shared/core/canonical-json.ts'
import type { IngestJob } from '#shared/domain/job-payloads.ts'
import type { Memory } from '#shared/domain/memory.ts'
import { lockForAcceptance } from '#shared/operations/accept-operations.ts'
import {
  acceptedSql,
  operationItem,
  operationItemColumns,
  type AcceptedOperation,
  type NewOperation,
} from '#shared/operations/operations.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import { padArray } from '#shared/storage/postgres/padded-array.ts'
import { insertedJobsSql } from '#shared/storage/queue/job-sql.ts'

/** An exchange to accept: its operation, and what its job carries besides. */
export type ExchangeWork = {
  operation: NewOperation
  payload: Pick<IngestJob, 'model' | 'retentionDays'> & { memories: Memory[] | JsonBytes }
  /** The exchange was opened under the same operation; it is accepted only when that is still open. */
  closesExchange: boolean
  /** A turn whose tool loop it ends: its kept steps are deleted. */
  answeredTurn?: Buffer | undefined
}

/**
 * The state of an exchange when it was closed. `open`: it was open, and is closed now; `void`: its vault or
 * session was cleared; `swept`: a sweep has accepted the user's turns alone; `kept`: it was accepted before,
 * with its answer.
 */
export type CloseOutcome = 'open' | 'void' | 'swept' | 'kept'

type AcceptedExchange = Pick<AcceptedOperation, 'epoch' | 'sessionEpoch' | 'fresh'> & {
  /** The state of the exchange that was to be closed: it was accepted if it is `open`. */
  closing: CloseOutcome | null
}

/**
 * Closes open exchanges and accepts them and others, with operation, bill and job, under the locks of
 * `lockForAcceptance`. Two statements that begin together: after them nothing is left to do.
 *
 * @returns one entry per exchange, in order.
 */
export async function acceptExchanges(
  tx: Transaction,
  exchanges: readonly ExchangeWork[],
): Promise<AcceptedExchange[]> {
  const operations = exchanges.map(({ operation }) => operation)
  const items = exchanges.map(({ operation, payload, closesExchange, answeredTurn }, n) => ({
    ...operationItem(operation, n),
    closes: closesExchange,
    answered_turn: answeredTurn?.toString('hex'),
    payload,
  }))
  const written = exchanges.flatMap(({ payload: { memories } }) =>
    memories instanceof JsonBytes ? [memories] : [],
  )
  const locked = lockForAcceptance(tx, operations)
  const answered = exchanges.flatMap(({ operation: { vault }, answeredTurn: turn }) =>
    turn ? [{ vault, turn }] : [],
  )
  const accepted = tx.query<AcceptedExchange>(
    acceptSql,
    [
      insertJsonBytes(JSON.stringify(items), written),
      // Postgres takes the items for a hundred: for so many it would read whole tables.
      padArray(operations.map(({ id }) => id)),
      padArray(answered.map(({ vault }) => vault)),
      padArray(answered.map(({ turn }) => turn)),
    ],
    'exchanges.accept',
  )
  const [, { rows }] = await Promise.all([locked, accepted])
  return rows
}

const acceptSql = `with asked as (
    select * from json_to_recordset($1::json) as asked(
      ${operationItemColumns}, closes boolean, answered_turn text, payload jsonb)
  ), ended as (
    delete from open_exchanges o using asked a
    where o.operation = any($2::uuid[]) and o.operation = a.id and a.closes
    returning o.operation, o.vault, o.session, o.epoch, o.session_epoch, o.turn, o.step
  ), steps as (
    delete from open_exchanges o using asked a
    where o.vault = any($3::uuid[]) and o.turn = any($4::bytea[]) and o.step
      and a.vault = o.vault and decode(a.answered_turn, 'hex') = o.turn
      and not exists (select from asked other where other.closes and other.id = o.operation)
  ), answered as (
    insert into unanswered_turns (vault, turn, epoch, session_epoch, answered)
    select distinct on (vault, turn) vault, turn, epoch, session_epoch, true from ended
    where turn is not null and not step
    order by vault, turn, operation desc
    on conflict (vault, turn) do nothing
  ), known as (
    select id from operations where id = any($2::uuid[])
  ), closed as (
    select a.n,
           case when e.operation is not null
                  then case when e.epoch is distinct from (select v.epoch from vaults v where v.id = e.vault)
                                 or e.session_epoch <> coalesce(
                                   (select s.epoch from sessions s
                                    where s.vault = e.vault and s.session = e.session), 0) then 'void'
                            when k.id is null then 'open'
                            -- A request sent again after a crash has opened it again.
                            else 'swept' end
                when k.id is null then 'void'
                -- Only an answer has output tokens: a sweep bills none.
                when (select u.output_tokens > 0 from usage_events u where u.id = a.id) then 'kept'
                else 'swept' end as closing
    from asked a left join ended e on e.operation = a.id left join known k on k.id = a.id
    where a.closes
  ), item as (
    select a.* from asked a where not a.closes or (select c.closing from closed c where c.n = a.n) = 'open'
  ), ${acceptedSql}, job as (
    select i.id,
           jsonb_build_object('operation', i.id, 'vault', i.vault, 'epoch', a.epoch, 'session', i.session,
                              'sessionEpoch', a."sessionEpoch") || i.payload as data,
           -a.pending as priority, null::text as key, null::text as "group", null::float8 as after
    from accepted a join item i on i.n = a.n where a.fresh
  ), ${insertedJobsSql('ingest', 'job', 'exists (select from item where awaited)')}
  -- A select in a with-clause runs only when it is read: this count sends the notification.
  select c.closing, a.epoch, a."sessionEpoch", coalesce(a.fresh, false) as fresh,
         (select count(*) from notified) as notified
  from asked left join closed c on c.n = asked.n left join accepted a on a.n = asked.n
  order by asked.n`
