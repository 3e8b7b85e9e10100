import { createHash } from 'node:crypto'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'

export type TokenCounts = {
  inputTokens: number
  /** Input tokens that a cache of the provider held. */
  cachedTokens: number
  outputTokens: number
}

/** One call of a model about a member's turn, or about a text that an admin tries. */
export type OrgModelCall = TokenCounts & {
  org: string
  pass: 'extract' | 'tag' | 'reconcile' | 'trial'
  member: string
  /** Provider-prefixed. */
  model: string
}

/**
 * The key hash that model calls are billed under. It is that of no Memory Key: usage that a member can read would
 * reveal the hidden memories that a turn was compared with.
 */
export const orgBillingHash = (org: string): Buffer =>
  createHash('sha256').update(`organization ${org}`).digest()

/** Adds a call to the sums of its day. */
export async function recordOrgUsage(
  { query }: Transaction,
  { org, pass, member, model, inputTokens, cachedTokens, outputTokens }: OrgModelCall,
): Promise<void> {
  await query(
    `insert into org_usage (org, day, pass, member, model, calls, input_tokens, cached_tokens, output_tokens)
     select id, (now() at time zone 'utc')::date, $2, $3, $4, 1, $5, $6, $7 from orgs where id = $1
     on conflict (org, day, pass, member, model) do update
       set calls = org_usage.calls + 1,
           input_tokens = org_usage.input_tokens + excluded.input_tokens,
           cached_tokens = org_usage.cached_tokens + excluded.cached_tokens,
           output_tokens = org_usage.output_tokens + excluded.output_tokens`,
    [org, pass, member, model, inputTokens, cachedTokens, outputTokens],
    'org-usage.add',
  )
}

export type OrgUsageRow = Omit<OrgModelCall, 'org'> & {
  /** `YYYY-MM-DD`, UTC. */
  day: string
  calls: number
}

/** Lists the sums from a day to another, both included, oldest first. */
export async function listOrgUsage(
  query: Query,
  org: string,
  { from, to }: { from: Date; to: Date },
): Promise<OrgUsageRow[]> {
  const { rows } = await query<OrgUsageRow>(
    `select to_char(day, 'YYYY-MM-DD') as day, pass, member, model, calls,
            input_tokens as "inputTokens", cached_tokens as "cachedTokens",
            output_tokens as "outputTokens"
     from org_usage
     where org = $1 and day >= ($2::timestamptz at time zone 'utc')::date
       and day <= ($3::timestamptz at time zone 'utc')::date
     order by day, pass, member, model`,
    [org, from, to],
    'org-usage.list',
  )
  return rows
}
