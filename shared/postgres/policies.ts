import type { Query } from '#shared/postgres/connect.ts'
import type { StoredRedaction } from '#shared/redaction/policy.ts'

/** What an account has decided about private data; null when nothing. */
export async function accountRedaction(
  query: Query,
  account: string,
): Promise<StoredRedaction | null> {
  const { rows } = await query<{ redaction: StoredRedaction | null }>(
    'select redaction from accounts where id = $1',
    [account],
    'policies.account',
  )
  return rows[0]?.redaction ?? null
}

/** What holds for an organization, and what it has decided itself; undefined once it is gone. */
export async function orgRedaction(
  query: Query,
  org: string,
): Promise<{ own: StoredRedaction | null; effective: StoredRedaction | null } | undefined> {
  const { rows } = await query<{ own: StoredRedaction | null; effective: StoredRedaction | null }>(
    `select o.redaction as own, coalesce(o.redaction, a.redaction) as effective
     from orgs o join accounts a on a.id = o.account where o.id = $1`,
    [org],
    'policies.org',
  )
  return rows[0]
}

/** Decides for an account, from its next request on. */
export async function putAccountRedaction(
  query: Query,
  account: string,
  redaction: StoredRedaction,
): Promise<void> {
  await query('update accounts set redaction = $2 where id = $1', [
    account,
    JSON.stringify(redaction),
  ])
}

/** Decides for an organization; null leaves it to the account. */
export async function putOrgRedaction(
  query: Query,
  org: string,
  redaction: StoredRedaction | null,
): Promise<void> {
  await query('update orgs set redaction = $2, updated_at = now() where id = $1', [
    org,
    redaction && JSON.stringify(redaction),
  ])
}
