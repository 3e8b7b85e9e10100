import type { Query } from '#shared/storage/postgres/connect.ts'
import type { StoredRedaction } from '#shared/privacy/redaction-policy.ts'

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
