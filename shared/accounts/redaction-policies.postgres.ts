import type { Query } from '#shared/storage/postgres/connect.ts'
import type { StoredRedactionPolicy } from '#shared/privacy/apply-redaction.ts'

/** What an account has decided about private data; null when nothing. */
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

/** Decides for an account, from its next request on. */
export async function putAccountRedaction(
  query: Query,
  account: string,
  redaction: StoredRedactionPolicy,
): Promise<void> {
  await query('update accounts set redaction = $2 where id = $1', [
    account,
    JSON.stringify(redaction),
  ])
}
