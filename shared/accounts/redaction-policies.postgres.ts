import type { Query } from '#shared/storage/postgres/connect.ts'
import type { StoredRedactionPolicy } from '#shared/privacy/apply-redaction.ts'

/** The redaction of an account; null when it has decided none. */
export async function findAccountRedaction(
  query: Query,
  account: string,
): Promise<StoredRedactionPolicy | null> {
  const { rows } = await query<{ redaction: StoredRedactionPolicy | null }>(
    'select redaction from accounts where id = $1',
    [account],
    'policies.account',
  )
  return rows[0]?.redaction ?? null
}

/** Writes the policy of an account, for its next request on. @returns whether it changed. */
export async function putAccountRedaction(
  query: Query,
  account: string,
  redaction: StoredRedactionPolicy,
): Promise<boolean> {
  const { rowCount } = await query(
    'update accounts set redaction = $2 where id = $1 and redaction is distinct from $2::jsonb',
    [account, JSON.stringify(redaction)],
  )
  return rowCount === 1
}
