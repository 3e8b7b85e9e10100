import { rollUpDaySql } from '#shared/billing/usage-sums.postgres.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

export type AccountUsage = {
  requests: number
  inputTokens: number
  outputTokens: number
  memoryTokens: number
}

/** `day` is `YYYY-MM-DD`, UTC; `accounts` is the number of accounts with usage on it. */
export type ServiceDayUsage = AccountUsage & { day: string; accounts: number }

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
  const { rows } = await query<Record<keyof ServiceDayUsage, string>>(
    `with ${usageSinceSql("(now() at time zone 'utc')::date - ($1::int - 1)", 'true')}
     select to_char(day, 'YYYY-MM-DD') as day, count(distinct account) as accounts,
            sum(requests) as requests, sum(input_tokens) as "inputTokens",
            sum(output_tokens) as "outputTokens", sum(memory_tokens) as "memoryTokens"
     from used group by day order by day`,
    [days],
    'usage.of-service',
  )
  return rows.map(row => ({
    day: row.day,
    accounts: Number(row.accounts),
    requests: Number(row.requests),
    inputTokens: Number(row.inputTokens),
    outputTokens: Number(row.outputTokens),
    memoryTokens: Number(row.memoryTokens),
  }))
}

/**
 * Rolls up every day that has ended, per account. Safe to run at any time and by several processes:
 * it locks the row of the mark, and counts each day once.
 *
 * @returns how many days were rolled up.
 */
export async function rollUpAccountUsage(query: Query): Promise<number> {
  const { rows } = await query<{ days: number }>(
    `with mark as (
       select before, greatest(before, ${rollUpDaySql}) as today from usage_accounts_rolled for update
     ), rolled as (
       insert into usage_accounts
       select e.account, (e.at at time zone 'utc')::date, count(*), sum(e.input_tokens),
              sum(e.output_tokens), sum(e.memory_tokens)
       from mark m join usage_events e
         on e.at >= m.before::timestamp at time zone 'utc'
        and e.at < m.today::timestamp at time zone 'utc'
       join accounts a on a.id = e.account
        and not exists (select from account_erasures gone where gone.account = a.id)
       group by 1, 2
       on conflict (account, day) do nothing
     ), moved as (
       update usage_accounts_rolled set before = (select today from mark)
       where before < (select today from mark)
     )
     select today - before as days from mark`,
    [],
    'usage.roll-up-accounts',
  )
  return rows[0]?.days ?? 0
}
