import type { Query } from '#shared/storage/postgres/connect.ts'
import type { StoredRedactionPolicy } from '#shared/privacy/apply-redaction.ts'

/** What holds for an organization, and what it has decided itself; undefined once it is gone. */
export async function findOrgRedaction(
  query: Query,
  org: string,
): Promise<
  { own: StoredRedactionPolicy | null; effective: StoredRedactionPolicy | null } | undefined
> {
  const { rows } = await query<{
    own: StoredRedactionPolicy | null
    effective: StoredRedactionPolicy | null
  }>(
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
  redaction: StoredRedactionPolicy | null,
): Promise<void> {
  await query('update orgs set redaction = $2, updated_at = now() where id = $1', [
    org,
    redaction && JSON.stringify(redaction),
  ])
}
