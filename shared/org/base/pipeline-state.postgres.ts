import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import { pgBossSchema } from '#shared/storage/queue/boss.ts'

export type PipelineGate = {
  paused: boolean
  overBudget: boolean
  /** Seconds until midnight UTC. */
  dayLeft: number
  faulty: boolean
  probes: number
}

/** @returns undefined once the organization is gone. */
export async function findPipelineGate(
  query: Query,
  org: string,
): Promise<PipelineGate | undefined> {
  const { rows } = await query<PipelineGate>(
    `select coalesce(p.paused, false) as paused, p.fault is not null as faulty,
            coalesce(p.probes, 0) as probes,
            coalesce(p.daily_token_budget <= (
              select coalesce(sum(input_tokens + output_tokens), 0) from org_usage u
              where u.org = o.id and u.day = (now() at time zone 'utc')::date), false) as "overBudget",
            extract(epoch from date_trunc('day', now() at time zone 'utc') + interval '1 day'
                               - now() at time zone 'utc')::float8 as "dayLeft"
     from orgs o left join org_pipelines p on p.org = o.id where o.id = $1`,
    [org],
    'pipeline.gate',
  )
  return rows[0]
}

/** Counts the organizations of all accounts whose pipeline is faulty. */
export async function countFaultyPipelines(query: Query): Promise<number> {
  const { rows } = await query<{ count: number }>(
    'select count(*)::int as count from org_pipelines where fault is not null',
    [],
    'pipeline.count-faulty',
  )
  return rows[0]!.count
}

/** Lists the faults of the pipelines of an account, by organization. */
export async function listPipelineFaults(
  query: Query,
  account: string,
): Promise<ReadonlyMap<string, string>> {
  const { rows } = await query<{ org: string; fault: string }>(
    `select p.org, p.fault from org_pipelines p join orgs o on o.id = p.org
     where o.account = $1 and p.fault is not null`,
    [account],
    'pipeline.faults',
  )
  return new Map(rows.map(({ org, fault }) => [org, fault]))
}

/** Claims a due probe of a faulty pipeline for one caller. */
export async function claimProbe(query: Query, org: string): Promise<boolean> {
  const { rowCount } = await query(
    `update org_pipelines set probe_at = now() + interval '5 minutes'
     where org = $1 and fault is not null and probe_at <= now()`,
    [org],
    'pipeline.probe',
  )
  return rowCount === 1
}

/** Makes a probe that asked no model due again. */
export async function returnProbe(query: Query, org: string): Promise<void> {
  await query(
    'update org_pipelines set probe_at = now() where org = $1 and fault is not null',
    [org],
    'pipeline.return-probe',
  )
}

/** Records a fault of the provider. @returns seconds until the next probe. */
export async function recordFault(query: Query, org: string, error: string): Promise<number> {
  const { rows } = await query<{ seconds: number }>(
    `insert into org_pipelines as p (org, fault, fault_since, probes, probe_at)
     select id, $2, now(), 1, now() + interval '2 seconds' from orgs where id = $1
     on conflict (org) do update
       set fault = excluded.fault, fault_since = coalesce(p.fault_since, now()),
           probes = p.probes + 1,
           probe_at = now() + make_interval(secs => least(60, power(2, least(p.probes + 1, 10))))
     returning extract(epoch from probe_at - now())::float8 as seconds`,
    [org, error],
    'pipeline.fault',
  )
  return rows[0]?.seconds ?? 60
}

/** Ends a fault. @returns whether there was one. */
export async function clearFault(query: Query, org: string): Promise<boolean> {
  const { rowCount } = await query(
    `update org_pipelines set fault = null, fault_since = null, probes = 0, probe_at = null
     where org = $1 and fault is not null`,
    [org],
    'pipeline.recovered',
  )
  return rowCount === 1
}

export type PipelineSettings = {
  paused?: boolean | undefined
  /** Null: no limit. */
  dailyTokenBudget?: number | null | undefined
}

export async function changePipeline(
  { query }: Transaction,
  org: string,
  { paused, dailyTokenBudget }: PipelineSettings,
): Promise<void> {
  await query(
    `insert into org_pipelines as p (org, paused, daily_token_budget)
     values ($1, coalesce($2, false), $3)
     on conflict (org) do update
       set paused = coalesce($2, p.paused),
           daily_token_budget = case when $4 then excluded.daily_token_budget
                                     else p.daily_token_budget end`,
    [org, paused ?? null, dailyTokenBudget ?? null, dailyTokenBudget !== undefined],
  )
}

const passQueues = ['org-extract', 'org-tag', 'org-reconcile']

export const givenUpQueues = passQueues.map(name => `${name}.dead`)

/** Jobs that are woken during a fault: one probes, others may have nothing to ask. */
const wokenMax = 10

/**
 * Makes the waiting jobs of an organization due, unless its admin has paused it. During a fault of its provider
 * only a few are woken, for the probe; its success wakes the others.
 */
export async function wakePipeline(query: Query, org: string): Promise<void> {
  await query(
    `with probe as (
       update org_pipelines set probe_at = now() where org = $1::uuid and fault is not null
       returning org
     ), woken as (
       select name, id from ${pgBossSchema}.job
       where name = any($2) and data->>'org' = $1::text and state < 'active' and start_after > now()
         and not exists (select from org_pipelines where org = $1::uuid and paused)
       order by created_on
       limit (select case when exists (select from probe) then ${wokenMax} end)
     )
     update ${pgBossSchema}.job j set start_after = now()
     from woken w where j.name = w.name and j.id = w.id and j.state < 'active'`,
    [org, passQueues],
    'pipeline.wake',
  )
}

/** Lists the dead letters of an organization's passes, oldest first. */
export async function listGivenUpTurns(
  query: Query,
  org: string,
  limit: number,
): Promise<{ queue: 'org-extract' | 'org-tag' | 'org-reconcile'; id: string }[]> {
  const { rows } = await query<{ queue: 'org-extract' | 'org-tag' | 'org-reconcile'; id: string }>(
    `select replace(name, '.dead', '') as queue, id from ${pgBossSchema}.job
     where name = any($2) and data->>'org' = $1 and state < 'active'
     order by created_on, id limit $3`,
    [org, givenUpQueues, limit],
  )
  return rows
}

export type PipelineStatus = {
  paused: boolean
  dailyTokenBudget: number | null
  spentToday: number
  fault: string | null
  faultSince: Date | null
  /** Unfinished turns, without those given up. */
  waiting: number
  givenUp: number
}

export async function findPipelineStatus(query: Query, org: string): Promise<PipelineStatus> {
  const { rows } = await query<PipelineStatus>(
    `with dead as (
       select count(*)::int as count from ${pgBossSchema}.job
       where name = any($2) and data->>'org' = $1 and state < 'active'
     ), open as (
       select count(*)::int as count from org_turns where org = $1::uuid and finished_at is null
     )
     select coalesce(p.paused, false) as paused, p.daily_token_budget as "dailyTokenBudget",
            p.fault, p.fault_since as "faultSince",
            greatest(0, open.count - dead.count) as waiting, dead.count as "givenUp",
            (select coalesce(sum(input_tokens + output_tokens), 0)::bigint from org_usage u
             where u.org = $1::uuid and u.day = (now() at time zone 'utc')::date) as "spentToday"
     from dead, open left join org_pipelines p on p.org = $1::uuid`,
    [org, givenUpQueues],
    'pipeline.status',
  )
  return rows[0]!
}
