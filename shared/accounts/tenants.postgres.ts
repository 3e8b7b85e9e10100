import { activeSql } from '#shared/access/key-row.postgres.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'
import { usageSinceSql, type UsageTotals } from '#shared/billing/usage-sums.postgres.ts'

/** An account as the operator sees it: counts, never memories. */
export type Tenant = {
  id: string
  email: string
  createdAt: Date
  /** Tokens left; null: unlimited. */
  balance: number | null
  hasPaymentMethod: boolean
  /** Keys that open a vault now: of the account itself, and of members of its organizations. */
  keys: number
  memberKeys: number
  vaults: number
  users: number
  /** Null: as many as the service lets every account have. */
  usersMax: number | null
  organizations: number
  /** Accepted operations that have not ended. */
  pending: number
  /** Raw memories that no reflection covers. */
  unconsolidated: number
  /** Usage of the last 30 days, today included. */
  used: UsageTotals
  /** The day, in UTC, of its last request in 30 days, or of its last operation; null without either. */
  lastActive: string | null
}

/**
 * Accounts, newest first.
 *
 * @param search a part of an email, in any case, or a whole id.
 * @param before the id of the last account of the previous page.
 */
export async function listTenants(
  query: Query,
  {
    search,
    before,
    limit,
  }: { search: string | undefined; before: string | undefined; limit: number },
): Promise<Tenant[]> {
  const { rows } = await query<Tenant>(
    `with page as (
       select id, email, created_at, balance, payment_method, users_max from accounts
       where ($1::text is null or position(lower($1) in email) > 0 or id::text = lower($1))
         and ($2::uuid is null or id < $2)
         and not exists (select from account_erasures gone where gone.account = accounts.id)
       order by id desc limit $3
     ), ${usageSinceSql(
       "(now() at time zone 'utc')::date - 29",
       'account in (select id from page)',
     )}, sums as (
       select account, max(day) as day, sum(requests) as requests, sum(input_tokens) as input,
              sum(output_tokens) as output, sum(memory_tokens) as memory
       from used group by account
     )
     select p.id, p.email, p.created_at as "createdAt", p.balance,
            p.payment_method is not null as "hasPaymentMethod", p.users_max as "usersMax", v.users,
            k.own as keys, k.members as "memberKeys", v.n as vaults, v.pending, v.raw as unconsolidated,
            (select count(*) from orgs where account = p.id) as organizations,
            json_build_object('requests', coalesce(s.requests, 0), 'inputTokens', coalesce(s.input, 0),
              'outputTokens', coalesce(s.output, 0), 'memoryTokens', coalesce(s.memory, 0)) as used,
            to_char(greatest(s.day, (
              select (created_at at time zone 'utc')::date from operations
              where account = p.id order by id desc limit 1)), 'YYYY-MM-DD') as "lastActive"
     from page p
     left join sums s on s.account = p.id
     cross join lateral (
       select count(*) filter (where kind = 'vault') as own,
              count(*) filter (where kind <> 'vault') as members
       from memory_keys k where k.account = p.id and ${activeSql}
     ) k
     cross join lateral (
       select count(*) as n, count(external_id) as users, coalesce(sum(pending), 0)::int as pending,
              coalesce(sum(greatest(raw_units, 0)), 0)::int as raw
       from vaults where account = p.id
     ) v
     order by p.id desc`,
    [search ?? null, before ?? null, limit],
    'tenants.list',
  )
  return rows
}
