import type { Query } from '#shared/storage/postgres/connect.ts'

type UsageTotals = {
  requests: number
  inputTokens: number
  outputTokens: number
  memoryTokens: number
}

/** `model` is provider-prefixed; '' for requests without a model. */
export type UsageByModel = UsageTotals & { model: string }

/** `day` is `YYYY-MM-DD`, UTC. */
export type DayUsage = UsageTotals & { day: string }

/** Usage of all keys that a vault ever had, from `start` to before `end`, per model. */
export async function usageByModel(
  query: Query,
  vault: string,
  { start, end }: { start: Date; end: Date },
): Promise<UsageByModel[]> {
  const { rows } = await query<Record<keyof UsageByModel, string>>(
    `${periodUsageSql} select model, ${sumColumns} from parts group by model order by model`,
    [vault, start, end],
  )
  return rows.map(({ model, ...sums }) => ({ model, ...toUsageTotals(sums) }))
}

/** Usage per UTC day, oldest first, without days without usage. */
export async function usageByDay(
  query: Query,
  vault: string,
  { start, end }: { start: Date; end: Date },
): Promise<DayUsage[]> {
  const { rows } = await query<Record<keyof DayUsage, string>>(
    `${periodUsageSql} select to_char(day, 'YYYY-MM-DD') as day, ${sumColumns} from parts group by day order by day`,
    [vault, start, end],
  )
  return rows.map(({ day, ...sums }) => ({ day, ...toUsageTotals(sums) }))
}

const sumColumns = `sum(requests) as requests, sum(input_tokens) as "inputTokens",
  sum(output_tokens) as "outputTokens", sum(memory_tokens) as "memoryTokens"`

/** Rolled-up days come from the daily sums, the rest from single events. */
const periodUsageSql = `with keys as (
    select hash from memory_keys where vault = $1
  ), period as (
    select $2::timestamptz as starts, $3::timestamptz as ends,
           (($2::timestamptz + interval '1 day' - interval '1 microsecond')
             at time zone 'utc')::date as first_day,
           least(($3::timestamptz at time zone 'utc')::date, (select before from usage_rolled))
             as after_days
  ), parts as (
    select d.day, d.model, d.requests, d.input_tokens, d.output_tokens, d.memory_tokens
    from usage_daily d, period p
    where d.key_hash in (select hash from keys) and d.day >= p.first_day and d.day < p.after_days
    union all
    select (e.at at time zone 'utc')::date, coalesce(e.model, ''), 1,
           e.input_tokens, e.output_tokens, e.memory_tokens
    from usage_events e, period p
    where e.key_hash in (select hash from keys) and e.at >= p.starts and e.at < p.ends
      and not ((e.at at time zone 'utc')::date >= p.first_day
               and (e.at at time zone 'utc')::date < p.after_days)
  )`

const toUsageTotals = (row: Record<keyof UsageTotals, string>): UsageTotals => ({
  requests: Number(row.requests),
  inputTokens: Number(row.inputTokens),
  outputTokens: Number(row.outputTokens),
  memoryTokens: Number(row.memoryTokens),
})

/**
 * The first day that is not rolled up yet, UTC. An event has the time when its transaction began: one that spans
 * midnight is in the database some seconds after the day.
 */
export const rollUpDaySql = `((now() - interval '5 minutes') at time zone 'utc')::date`

/**
 * Rolls up every day that has ended. Safe to run at any time and by several processes: it locks the
 * row of the mark, and counts each day once.
 *
 * @returns how many days were rolled up.
 */
export async function rollUpKeyUsage(query: Query): Promise<number> {
  const { rows } = await query<{ days: number }>(
    `with mark as (
       select before, greatest(before, ${rollUpDaySql}) as today from usage_rolled for update
     ), rolled as (
       insert into usage_daily (key_hash, day, model, requests,
                                input_tokens, output_tokens, memory_tokens)
       select e.key_hash, (e.at at time zone 'utc')::date, coalesce(e.model, ''), count(*),
              sum(e.input_tokens), sum(e.output_tokens), sum(e.memory_tokens)
       from usage_events e, mark m
       where e.at >= m.before::timestamp at time zone 'utc'
         and e.at < m.today::timestamp at time zone 'utc'
         and not exists (select from account_erasures gone where gone.account = e.account)
       group by 1, 2, 3
       on conflict (key_hash, day, model) do nothing
     ), moved as (
       update usage_rolled set before = (select today from mark)
       where before < (select today from mark)
     )
     select today - before as days from mark`,
  )
  return rows[0]?.days ?? 0
}
