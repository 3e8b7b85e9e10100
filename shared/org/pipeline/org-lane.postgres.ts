import type { Postgres, Query } from '#shared/storage/postgres/connect.ts'
import { setTimeout as delay } from 'node:timers/promises'

/** Between two tries to take the lane: work in it takes milliseconds, or one model call. */
const retryMs = 150
const renewMs = 5_000
/** A process that has died loses the lane after so long. */
const leaseSeconds = 20

/**
 * Runs `work` in the lane of an organization, so that one turn at a time changes its shared memory. The lane is a lease
 * that is renewed meanwhile: neither the turn that has it nor those that wait hold a connection while a model thinks.
 * The same turn takes it again, as after a crash.
 *
 * @param work gets a signal that fires, too, when the lane went to another turn: its process was not heard of for 20 s
 * @throws as `work` does; the reason of `signal` when it is aborted before the lane is free.
 */
export async function inOrgLane<Result>(
  { query }: Pick<Postgres, 'query'>,
  { org, turn }: { org: string; turn: string },
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  while (!(await takeLane(query, org, turn))) await delay(retryMs, undefined, { signal })
  const lost = new AbortController()
  const renewal = setInterval(() => {
    renewLane(query, org, turn).then(
      isOurs => isOurs || lost.abort(new Error('The lane went to another turn')),
      // An unreachable database refuses the work itself.
      () => {},
    )
  }, renewMs)
  try {
    return await work(AbortSignal.any([signal, lost.signal]))
  } finally {
    clearInterval(renewal)
    await leaveLane(query, org, turn).catch(() => {})
  }
}

/** @returns false while another turn has the lane; true, too, once the organization is gone. */
async function takeLane(query: Query, org: string, turn: string): Promise<boolean> {
  const { rows } = await query<{ free: boolean }>(
    `with organization as (
       select id from orgs where id = $1
     ), taken as (
       insert into org_pipelines as p (org, lane_turn, lane_until)
       select id, $2, now() + make_interval(secs => $3) from organization
       on conflict (org) do update
         set lane_turn = excluded.lane_turn, lane_until = excluded.lane_until
         where p.lane_turn is null or p.lane_turn = $2 or p.lane_until < now()
       returning p.org
     )
     select exists (select from taken) or not exists (select from organization) as free`,
    [org, turn, leaseSeconds],
    'org-lane.take',
  )
  return rows[0]!.free
}

/** A renewal that comes after the lane was left takes nothing. @returns whether the lane is the turn's, or nobody's */
async function renewLane(query: Query, org: string, turn: string): Promise<boolean> {
  const { rows } = await query<{ ours: boolean }>(
    `with renewed as (
       update org_pipelines set lane_until = now() + make_interval(secs => $3)
       where org = $1 and lane_turn = $2
     )
     select not exists (
       select from org_pipelines where org = $1 and lane_turn <> $2
     ) as ours`,
    [org, turn, leaseSeconds],
    'org-lane.renew',
  )
  return rows[0]!.ours
}

const leaveLane = (query: Query, org: string, turn: string) =>
  query(
    `update org_pipelines set lane_turn = null, lane_until = null
     where org = $1 and lane_turn = $2`,
    [org, turn],
    'org-lane.leave',
  )
