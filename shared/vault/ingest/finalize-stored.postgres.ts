import { suggestionColumns, suggestionDeliveriesSql } from '#shared/vault/base/vaults.postgres.ts'
import {
  deliveriesColumn,
  finishedColumns,
  finishedDeliveriesSql,
  type WrittenDelivery,
} from '#shared/operations/finished-deliveries.postgres.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import { endedJobsSql } from '#shared/storage/queue/job-sql.ts'
import { lockVaults } from '#shared/operations/vault-locks.postgres.ts'
import { settledChannel } from '#shared/operations/operations.postgres.ts'

/** The memories an operation stored, in one partition of its vault. */
export type StoredOperation = {
  operation: string
  vault: string
  session: string | null
  sessionEpoch: number
  ids: string[]
  /** Core memories that now wait for consolidation. */
  rawUnits: number
  rawTokens: number
  /** The account's retention they were written under, in days; null: none. */
  retentionDays: number | null
  /** The claim of its job, which ends with the operation unless that was cleared; missing: the caller ends the job. */
  claim?: number | undefined
}

export type FinalizeResult = {
  /** Operations whose vault or session was cleared: their memories were never visible; discard them. */
  clearedOperations: string[]
  /** Operations whose jobs have ended. */
  endedJobs: string[]
  /** How many are finalized. The others were before, or their account has changed its retention. */
  finalized: number
  /** Messages to webhooks; the jobs that deliver them are the caller's to send. */
  deliveries: WrittenDelivery[]
}

/**
 * Finalizes stored operations, each once: raises the vault's revision, logs the new memories, adds to the debt,
 * sets the time of a session's last memory and ends the jobs, in one statement. Operations whose memories were written
 * under another retention than the current one are left unfinished.
 *
 * Its with-clauses all see the tables as they were when it began, none sees what another has written. Rows go from one to
 * the next by `returning` alone: input, vault → finished_operation → outcome → vault_revision → change_log_row; outcome →
 * session_row, ended_job. Visibility is computed twice by one rule: for the column `outcome`, and in the clause `outcome`.
 */
export async function finalizeStored(
  tx: Transaction,
  stored: readonly StoredOperation[],
): Promise<FinalizeResult> {
  const vaults = [...new Set(stored.map(({ vault }) => vault))]
  const operations = stored.map(({ operation }) => operation)
  const items = JSON.stringify(stored.map(storedItem))
  // In one round trip, but two statements: the second sees what the holders of the locks have written.
  const locked = lockVaults(tx, vaults)
  const finalized = tx.query<FinalizeResult>(
    `with input as (
       -- What the caller stored, a row per operation.
       select * from jsonb_to_recordset($1::jsonb) as input(
         id uuid, session text, session_epoch int, ids uuid[], raw_units int, raw_tokens bigint,
         retention_days int, claim int)
     ), vault as (
       select id, epoch from vaults where id = any($2::uuid[])
     ), finished_operation as (
       -- The operations that end now; one whose vault or session was cleared ends with nothing stored. A job that was
       -- given up (failed) may have written its memories all the same.
       update operations o set state = 'done', finished_at = now(), progress_done = progress_total,
         status = 200,
         outcome = jsonb_build_object('kind', 'ingest', 'stored', case
           when o.epoch = v.epoch and i.session_epoch = coalesce(
             (select s.epoch from sessions s where s.vault = o.vault and s.session = i.session), 0)
           then cardinality(i.ids) else 0 end)
       from input i, vault v
       where o.id = any($3::uuid[]) and o.id = i.id and v.id = o.vault
         -- As a case, since the planner expects few rows of these states, and joins by nested loops.
         and case when o.state in ('accepted', 'running', 'failed') then true else false end
         -- By a subquery: as a join the planner looks up each operation once for every account there is.
         and (select a.retention_days is not distinct from i.retention_days
              from accounts a where a.id = o.account)
       -- finishedColumns has id, vault, account and awaited, which later clauses read.
       returning ${finishedColumns}, o.epoch = v.epoch as is_vault_current
     ), finished_delivery as (
       ${finishedDeliveriesSql('finished_operation')}
     ), outcome as (
       -- What each operation stored, and whether it can be seen: nothing was cleared since it was accepted.
       select f.id, f.vault, i.session, i.ids, i.raw_units, i.raw_tokens, i.claim,
              f.is_vault_current and coalesce(s.epoch, 0) = i.session_epoch as is_visible
       from finished_operation f join input i on i.id = f.id
       left join sessions s on s.vault = f.vault and s.session = i.session
     ), vault_revision as (
       -- The counts of each vault, and the next revision; pending: accepted operations that are not finalized yet.
       update vaults v
       -- Without memories to see the log gets no row, and a revision that it lacks means a full read.
       set revision = revision + tally.has_visible::int, pending = greatest(0, pending - tally.n),
           raw_units = raw_units + tally.units, raw_tokens = raw_tokens + tally.tokens
       from (select vault, count(*)::int n, bool_or(is_visible and ids <> '{}') as has_visible,
                    coalesce(sum(raw_units) filter (where is_visible), 0)::int units,
                    coalesce(sum(raw_tokens) filter (where is_visible), 0)::bigint tokens
             from outcome group by vault) tally
       where v.id = tally.vault
       returning ${suggestionColumns}, v.revision, v.raw_tokens - tally.tokens as former_tokens,
                 v.tier2_importance as former_importance
     ), suggestion_delivery as (
       ${suggestionDeliveriesSql('vault_revision')}
     ), deliveries as (
       select * from finished_delivery union all select * from suggestion_delivery
     ), change_log_row as (
       -- The ids under that revision, by which the processes bring their indexes up to date.
       insert into vault_changes (vault, revision, session, stored)
       select vault, revision, session, array_agg(id)
       from (select o.vault, r.revision, coalesce(o.session, '') as session, unnest(o.ids) as id
             from outcome o join vault_revision r on r.id = o.vault where o.is_visible) memory
       group by vault, revision, session
     ), session_row as (
       insert into sessions (vault, session, stored_at)
       select o.vault, o.session, clock_timestamp() from outcome o
       where o.is_visible and o.session <> '' group by o.vault, o.session
       on conflict (vault, session) do update set stored_at = excluded.stored_at
     ), ended_job as (
       -- The jobs of operations that stored something; those of the others wait for the caller.
       ${endedJobsSql('ingest', '(select id, claim from outcome where is_visible)')}
     ), notification as (
       -- A notice to requests that wait for their operation.
       select pg_notify('${settledChannel}', id::text) from finished_operation where awaited
     )
     -- A select in a with-clause runs only when it is read: this count sends the notifications.
     select coalesce(array_agg(id) filter (where not is_visible), '{}') as "clearedOperations",
            coalesce((select array_agg(id) from ended_job), '{}') as "endedJobs",
            (select count(*) from notification) as told, count(*)::int as finalized, ${deliveriesColumn}
     from outcome`,
    [items, vaults, operations],
    'operations.settle',
  )
  const [, { rows }] = await Promise.all([locked, finalized])
  return rows[0]!
}

/** The current retention in days of the accounts of those operations that are not finalized. */
export async function findChangedRetentions(
  query: Query,
  stored: readonly StoredOperation[],
): Promise<Map<string, number | null>> {
  const { rows } = await query<{ id: string; days: number | null }>(
    `select o.id, a.retention_days as days from operations o join accounts a on a.id = o.account
     where o.id = any($1::uuid[]) and o.state in ('accepted', 'running', 'failed')`,
    [stored.map(({ operation }) => operation)],
    'operations.stale',
  )
  return new Map(rows.map(({ id, days }) => [id, days]))
}

const storedItem = ({ operation, session, ids, ...stored }: StoredOperation) => ({
  id: operation,
  session,
  session_epoch: stored.sessionEpoch,
  ids,
  raw_units: stored.rawUnits,
  raw_tokens: stored.rawTokens,
  retention_days: stored.retentionDays,
  claim: stored.claim,
})
