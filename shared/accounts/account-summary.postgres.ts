import { lowestIdAt } from '#shared/core/ids.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

/** An account as its owner meets it. Days are UTC. */
export type AccountSummary = {
  email: string
  createdAt: Date
  users: number
  usersNew: number
  usersActive: number
  calls: CallDay[]
}

/** Calls of a day, by what they came to; each counts once. */
type CallDay = {
  day: string
  given: number
  nothing: number
  withoutMemory: number
  failed: number
  other: number
}

const dayMs = 24 * 3_600_000
/** Days of calls, and of what is new or active. */
const callDays = 14
const recentDays = 7

/** @param now epoch milliseconds */
export async function findAccountSummary(
  query: Query,
  account: string,
  now: number,
): Promise<AccountSummary> {
  const { rows } = await query<Omit<AccountSummary, 'calls' | 'usersActive'>>(
    `select a.email, a.created_at as "createdAt", u.users, u.recent as "usersNew"
     from accounts a cross join lateral (
       select count(*)::integer as users,
              (count(*) filter (where v.created_at > $2))::integer as recent
       from vaults v where v.account = a.id and v.external_id is not null) u
     where a.id = $1`,
    [account, new Date(now - recentDays * dayMs)],
    'accounts.summary',
  )
  const since = now - (callDays - 1) * dayMs
  const begin = since - (since % dayMs)
  const calls = await query<CallDay & { active: string[] | null }>(
    `select to_char(c.at, 'YYYY-MM-DD') as day,
            (count(*) filter (where not failed and status = 'ok'))::integer as given,
            (count(*) filter (where not failed and status = 'none'))::integer as nothing,
            (count(*) filter (where not failed and status = 'degraded'))::integer as "withoutMemory",
            (count(*) filter (where failed))::integer as failed,
            (count(*) filter (where not failed and status not in ('ok', 'none', 'degraded')))::integer as other,
            array_agg(distinct vault) filter (where at >= $4::date) as active
     from (select t.vault, t.status, date_trunc('day', t.created_at at time zone 'utc')::date as at,
                  coalesce(t.outcome ? 'error' or t.outcome->'status' >= '400', false) as failed
           from call_traces t
           where t.account = $1 and t.id >= $2 and t.created_at >= $3 and t.expires_at > now()) c
     group by c.at order by c.at`,
    [account, lowestIdAt(begin - 3_600_000), new Date(begin), new Date(now - recentDays * dayMs)],
    'accounts.call-days',
  )
  const active = new Set(calls.rows.flatMap(row => row.active ?? []))
  return { ...rows[0]!, usersActive: active.size, calls: calls.rows }
}
