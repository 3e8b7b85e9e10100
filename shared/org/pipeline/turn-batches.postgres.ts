import type { OrgExtractJob } from '#shared/domain/job-payloads.ts'
import type { TurnRow } from '#shared/org/base/org-turns.postgres.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import { pgBossSchema } from '#shared/storage/queue/boss.ts'

/** How long the jobs of turns that go along with another rest: longer than any call of a model. */
const restSeconds = 300

/**
 * Gathers the jobs of turns to extract together with a turn: waiting ones of the same member and session, oldest
 * first. Their own jobs rest meanwhile. A later turn whose job was fetched after this one's waits too
 * (`waitsForEarlier`). A batch stays as it is when the job runs again. A turn that made a batch fail gets none.
 */
export async function gatherTurns(
  query: Query,
  { turn, vault, epoch, session, sessionEpoch }: OrgExtractJob,
  bounds: {
    turnsMax: number
    /** Characters of the messages as JSON. */
    charactersMax: number
  },
): Promise<OrgExtractJob[]> {
  const { turnsMax, charactersMax } = bounds
  const { rows } = await query<{ data: OrgExtractJob }>(
    `with leader as (
       -- The turn, and since when its job runs.
       select t.id, t.org_user, t.batch, t.alone, t.said_at, j.started_on
       from org_turns t
       left join ${pgBossSchema}.job j
         on j.name = 'org-extract' and j.id = t.id and j.state = 'active'
       where t.id = $1
     ), waiting as (
       -- Turns of its member and session that are in no batch. Their jobs wait, or were fetched after the leader's: such
       -- a job rests by waitsForEarlier and finds itself led by isLedByAnother.
       select t.id, t.said_at, j.data
       from leader l
       join org_turns t on t.org_user = l.org_user and t.finished_at is null
       join ${pgBossSchema}.job j on j.name = 'org-extract' and j.id = t.id
       where l.batch is null and not l.alone and t.id <> l.id and t.pass1 is null
         and t.batch is null and not t.alone
         and (j.state < 'active'
              or j.state = 'active' and j.started_on > l.started_on
                 and (t.said_at, t.id) > (l.said_at, l.id))
         and j.data->>'vault' = $2 and (j.data->>'epoch')::int = $3
         and j.data->>'session' is not distinct from $4
         and (j.data->>'sessionEpoch')::int = $5
       order by t.said_at, t.id limit $6
       for update of t, j skip locked
     ), fitting as (
       -- The first of them that fit.
       select id, data from (
         select id, data, sum(length(data->>'messages')) over (order by said_at, id) as total
         from waiting
       ) counted where total <= $7
     ), led as (
       -- They and the leader are one batch from now on.
       update org_turns t set batch = $1 where exists (select from fitting)
         and (t.id = $1 or t.id in (select id from fitting))
     ), rested as (
       -- Their jobs sleep meanwhile; one that runs already does so by itself.
       update ${pgBossSchema}.job j set start_after = now() + make_interval(secs => $8)
       from fitting f where j.name = 'org-extract' and j.id = f.id and j.state < 'active'
     )
     select data from fitting
     union all
     -- The batch of a job that runs again.
     select j.data from leader l
     join org_turns t on t.batch = l.id and t.id <> l.id and t.pass1 is null and t.finished_at is null
     join ${pgBossSchema}.job j on j.name = 'org-extract' and j.id = t.id and j.state < 'completed'`,
    [turn, vault, epoch, session, sessionEpoch, turnsMax - 1, charactersMax, restSeconds],
    'turn-batches.gather',
  )
  return rows.map(({ data }) => data)
}

/** Whether a turn goes along with another whose job still exists. Without that job the turn goes alone again. */
export async function isLedByAnother(query: Query, { id, batch }: TurnRow): Promise<boolean> {
  if (batch === null || batch === id) return false
  const { rows } = await query<{ led: boolean }>(
    `with leader as (
       select from ${pgBossSchema}.job
       where name = 'org-extract' and id = $2 and state < 'completed'
     ), freed as (
       update org_turns set batch = null
       where id = $1 and batch = $2 and pass1 is null and not exists (select from leader)
     )
     select exists (select from leader) as led`,
    [id, batch],
    'turn-batches.led',
  )
  return rows[0]!.led
}

/** Whether an earlier turn of the same session is being extracted: then this one waits, to go along with later ones. */
export async function waitsForEarlier(
  query: Query,
  { turn, vault, session }: OrgExtractJob,
): Promise<boolean> {
  const { rowCount } = await query(
    `select from org_turns own
     join org_turns t on t.org_user = own.org_user and t.finished_at is null and t.pass1 is null
       and (t.said_at, t.id) < (own.said_at, own.id)
     join ${pgBossSchema}.job j on j.name = 'org-extract' and j.id = t.id
     where own.id = $1 and not own.alone and not t.alone
       and j.state = 'active' and j.data->>'vault' = $2
       and j.data->>'session' is not distinct from $3
     limit 1`,
    [turn, vault, session],
    'turn-batches.earlier',
  )
  return rowCount > 0
}

/** Makes the first of the turns the leader of a batch; one alone is none. */
export async function leadTurns(
  { query }: Transaction,
  [leader, ...others]: readonly string[],
): Promise<void> {
  await query(
    'update org_turns set batch = $3 where id = $1 or id = any($2::uuid[])',
    [leader, others, others.length > 0 ? leader : null],
    'turn-batches.lead',
  )
}

/** Deletes the extraction jobs of turns that went along with another. */
export async function dropLedJobs({ query }: Transaction, turns: readonly string[]): Promise<void> {
  await query(
    `delete from ${pgBossSchema}.job
     where name = 'org-extract' and id = any($1::uuid[]) and state < 'active'`,
    [turns],
    'turn-batches.drop-jobs',
  )
}

/**
 * Ends a failed batch: each of its turns goes alone, and waiting extractions are due now.
 *
 * @returns the other turns that have no job of their own.
 */
export async function splitBatch({ query }: Transaction, leader: string): Promise<string[]> {
  const { rows } = await query<{ id: string; extracted: boolean }>(
    `with split as (
       update org_turns set batch = null, alone = true
       where batch = $1 and finished_at is null
       returning id, pass1 is not null as extracted
     ), due as (
       update ${pgBossSchema}.job j set start_after = now() from split s
       where j.name = 'org-extract' and j.id = s.id and j.state < 'active'
     )
     select id, extracted from split where id <> $1`,
    [leader],
    'turn-batches.split',
  )
  return rows.flatMap(({ id, extracted }) => (extracted ? [id] : []))
}
