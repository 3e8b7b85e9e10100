import type { Query } from '#shared/storage/postgres/connect.ts'
import type { StoredRedactionPolicy } from '#shared/privacy/apply-redaction.ts'

/** The effective redaction of an organization and its own; undefined once it is removed. */
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

/** Writes the policy of an organization; null leaves it to the account. @returns whether it changed. */
export async function putOrgRedaction(
  query: Query,
  org: string,
  redaction: StoredRedactionPolicy | null,
): Promise<boolean> {
  const { rows } = await query<{ changed: boolean }>(
    `with former as (select id, redaction from orgs where id = $1 for no key update)
     update orgs o set redaction = $2, updated_at = now()
     from former where o.id = former.id
     returning former.redaction is distinct from o.redaction as changed`,
    [org, redaction && JSON.stringify(redaction)],
  )
  return rows[0]?.changed ?? false
}
