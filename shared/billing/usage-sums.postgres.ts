import type { Query } from '#shared/storage/postgres/connect.ts'

export type UsageTotals = {
  requests: number
  inputTokens: number
  outputTokens: number
  memoryTokens: number
}

/** `model` is provider-prefixed; '' for requests without a model. */
export type UsageByModel = UsageTotals & { model: string }

/** `day` is `YYYY-MM-DD`, UTC. */
export type DayUsage = UsageTotals & { day: string }

/** `accounts` is the number of accounts with usage on the day. */
export type ServiceDayUsage = DayUsage & { accounts: number }

const dayColumn = `to_char(day, 'YYYY-MM-DD') as day`

const totalColumns = `sum(requests)::bigint as requests,
  sum(input_tokens)::bigint as "inputTokens", sum(output_tokens)::bigint as "outputTokens",
  sum(memory_tokens)::bigint as "memoryTokens"`

/** Usage of all keys that a vault ever had, from `start` to before `end`, per model. */
export async function usageByModel(
  query: Query,
  vault: string,
  { start, end }: { start: Date; end: Date },
): Promise<UsageByModel[]> {
  const { rows } = await query<UsageByModel>(
    `${vaultUsageSql} select model, ${totalColumns} from parts group by model order by model`,
    [vault, start, end],
  )
  return rows
}

/** Usage per UTC day, oldest first, without days without usage. */
export async function usageByDay(
  query: Query,
  vault: string,
  { start, end }: { start: Date; end: Date },
): Promise<DayUsage[]> {
  const { rows } = await query<DayUsage>(
    `${vaultUsageSql} select ${dayColumn}, ${totalColumns} from parts group by day order by day`,
    [vault, start, end],
  )
  return rows
}

/**
 * With-clauses that end in `parts`, the usage of a table `keys` with the column `hash` from `$2` to before `$3`: rolled-up
 * days come from the daily sums, the rest from single events.
 *
 * @param ofDays condition on the sums `d` of days
 * @param withSessions all from single events: sums of days have no sessions
 */
export const usagePartsSql = (ofDays: string, withSessions = false): string => `days as (
    select $2::timestamptz as starts, $3::timestamptz as ends,
           (($2::timestamptz + interval '1 day' - interval '1 microsecond')
             at time zone 'utc')::date as first,
           least(($3::timestamptz at time zone 'utc')::date, (select before from usage_rolled))
             as after
  ), rolled as (
    select *, least(ends, first::timestamp at time zone 'utc') as starts_at from days
  ), spans as (
    ${
      withSessions
        ? 'select starts as since, ends as until from days'
        : `select starts as since, starts_at as until from rolled where starts < starts_at
    union all
    select greatest(starts_at, after::timestamp at time zone 'utc'), ends from rolled`
    }
  ), parts as (
    select e.key_hash, (e.at at time zone 'utc')::date as day, coalesce(e.model, '') as model,
           e.session, 1 as requests, e.input_tokens, e.cached_tokens, e.output_tokens, e.memory_tokens
    from spans s cross join keys k
    -- One range of the index by key and time for each key. Written as a plain join and bounds of the time, Postgres would
    -- often read the events of all accounts in that time.
    cross join lateral (
      select * from usage_events e
      where e.key_hash = k.hash and (e.key_hash, e.at) >= (k.hash, s.since)
        and (e.key_hash, e.at) < (k.hash, s.until) offset 0
    ) e
    ${
      withSessions
        ? ''
        : `union all
    select d.key_hash, d.day, d.model, null, d.requests, d.input_tokens, d.cached_tokens,
           d.output_tokens, d.memory_tokens
    from usage_daily d, days
    where d.day >= days.first and d.day < days.after and ${ofDays}`
    }
  )`

const vaultUsageSql = `with keys as (select hash from memory_keys where vault = $1),
  ${usagePartsSql('d.key_hash in (select hash from keys)')}`

/**
 * SQL for the usage per account and day since a day, today included: a table `used` of the accounts
 * that `whose` selects. Rolled-up days come from their sums, the others from their events.
 */
export const usageSinceSql = (since: string, whose: string): string => `
  used as (
    select account, day, requests, input_tokens, output_tokens, memory_tokens
    from usage_accounts
    where day >= ${since} and day < (select before from usage_accounts_rolled) and ${whose}
    union all
    select account, (at at time zone 'utc')::date, count(*), sum(input_tokens), sum(output_tokens),
           sum(memory_tokens)
    from usage_events
    where at >= greatest(${since}, (select before from usage_accounts_rolled))::timestamp
                at time zone 'utc' and ${whose}
    group by 1, 2
  )`

/** Usage of all accounts on each of the last days, oldest first, without days without usage. */
export async function serviceUsageByDay(query: Query, days: number): Promise<ServiceDayUsage[]> {
  const { rows } = await query<ServiceDayUsage>(
    `with ${usageSinceSql("(now() at time zone 'utc')::date - ($1::int - 1)", 'true')}
     select ${dayColumn}, count(distinct account) as accounts, ${totalColumns}
     from used group by day order by day`,
    [days],
    'usage.of-service',
  )
  return rows
}

/**
 * The first day that is not rolled up yet, UTC. An event has the time when its transaction began: one that spans
 * midnight is in the database some seconds after the day.
 */
export const rollUpDaySql = `((now() - interval '5 minutes') at time zone 'utc')::date`

/** Rolls up the usage of each key and model on the days that have ended. @returns as `rollUp`. */
export const rollUpKeyUsage = (query: Query): Promise<number> =>
  rollUp(query, { table: 'usage_daily', mark: 'usage_rolled' }, [
    ['key_hash', 'e.key_hash'],
    ['account', 'e.account'],
    ['model', `coalesce(e.model, '')`],
  ])

/** Rolls up the usage of each account on the days that have ended. @returns as `rollUp`. */
export const rollUpAccountUsage = (query: Query): Promise<number> =>
  rollUp(query, { table: 'usage_accounts', mark: 'usage_accounts_rolled' }, [
    ['account', 'e.account'],
  ])

/**
 * Safe to run at any time and by several processes: it locks the row of the mark, and counts each day once.
 *
 * @param keys columns that a sum is of, and their SQL
 * @returns how many days were rolled up.
 */
async function rollUp(
  query: Query,
  { table, mark }: { table: string; mark: string },
  keys: readonly [column: string, sql: string][],
): Promise<number> {
  const values = keys.map(([, sql]) => sql).join(', ')
  const { rows } = await query<{ days: number }>(
    `with mark as (
       select before, greatest(before, ${rollUpDaySql}) as today from ${mark} for update
     ), rolled as (
       insert into ${table} (${keys.map(([column]) => column).join(', ')}, day, requests,
                             input_tokens, cached_tokens, output_tokens, memory_tokens)
       select ${values}, (e.at at time zone 'utc')::date as day, count(*), sum(e.input_tokens),
              sum(e.cached_tokens), sum(e.output_tokens), sum(e.memory_tokens)
       from mark m join usage_events e
         on e.at >= m.before::timestamp at time zone 'utc'
        and e.at < m.today::timestamp at time zone 'utc'
       join accounts a on a.id = e.account
        and not exists (select from account_erasures gone where gone.account = a.id)
       group by ${values}, day
       on conflict do nothing
     ), moved as (
       update ${mark} set before = (select today from mark)
       where before < (select today from mark)
     )
     select today - before as days from mark`,
  )
  return rows[0]?.days ?? 0
}

/** Events of a slice: reading as many takes some 0.02 s. */
const sliceRows = 10_000

/**
 * Walks the usage events of a key, or of the whole service, in the order of time: `usage_events` is never
 * trimmed, so no statement may read all of it. There is no index on its vaults and accounts, which each counted
 * request would have to write.
 *
 * @param after where to begin: a time, or `-infinity`
 * @returns bounds `at > after and at <= upTo`, as texts with microseconds: a Date has none
 */
export async function* usageSlices(
  query: Query,
  { key, after }: { key?: Buffer; after: string },
): AsyncGenerator<{ after: string; upTo: string }> {
  const ofKey = key ? 'and key_hash = $3' : ''
  for (let from = after; ;) {
    const { rows } = await query<{ upTo: string }>(
      `select at::text as "upTo" from usage_events where at > $1::timestamptz ${ofKey}
       order by usage_events.at offset $2 limit 1`,
      [from, sliceRows, ...(key ? [key] : [])],
    )
    const upTo = rows[0]?.upTo ?? 'infinity'
    yield { after: from, upTo }
    if (!rows[0]) return
    from = upTo
  }
}
