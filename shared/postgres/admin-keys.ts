import type { Query } from '#shared/postgres/connect.ts'

/** The email an admin credential acts for, while it is neither expired nor revoked. */
export async function findAdmin(query: Query, hash: Buffer): Promise<string | undefined> {
  const { rows } = await query<{ email: string }>(
    `select email from admin_keys
     where hash = $1 and revoked_at is null and expires_at > now()`,
    [hash],
    'admin-keys.find',
  )
  return rows[0]?.email
}
