import type { Query } from '#shared/storage/postgres/connect.ts'
import type { StoredRedaction } from '#shared/privacy/redaction-policy.ts'

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
