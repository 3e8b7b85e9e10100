import { mintId } from '#shared/core/ids.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

type AdminAccount = { email: string; account: string | null }

/** Whom an admin credential acts for, while it is neither expired nor revoked; and their account. */
export async function findAdmin(query: Query, hash: Buffer): Promise<AdminAccount | undefined> {
  const { rows } = await query<AdminAccount>(
    `select k.email, a.id as account from admin_keys k left join accounts a on a.email = k.email
     where k.hash = $1 and k.revoked_at is null and k.expires_at > now()`,
    [hash],
    'admin-keys.find',
  )
  return rows[0]
}

/** The admin of an email, by whatever means they were recognised. */
export async function findAdminByEmail(query: Query, email: string): Promise<AdminAccount> {
  const { rows } = await query<{ account: string }>(
    'select id as account from accounts where email = $1',
    [email],
    'admin-keys.find-by-email',
  )
  return { email, account: rows[0]?.account ?? null }
}

export type NewAdminKey = {
  /** A new one when missing. */
  id?: string
  hash: Buffer
  email: string
  masked: string
  issuedBy: string
  expiresAt: Date
}

/**
 * Issues a credential. Issued again under the same id it replaces the one before, which nobody has
 * seen: its answer was lost.
 */
export async function insertAdminKey(query: Query, key: NewAdminKey): Promise<AdminKey> {
  const { rows } = await query<AdminKeyColumns>(
    `insert into admin_keys (id, hash, email, masked, issued_by, expires_at)
     values ($1, $2, $3, $4, $5, $6)
     on conflict (id) do update set hash = excluded.hash, masked = excluded.masked
     returning ${columns}`,
    [key.id ?? mintId(), key.hash, key.email, key.masked, key.issuedBy, key.expiresAt],
  )
  return toAdminKey(rows[0]!)
}

export type AdminKey = {
  id: string
  email: string
  masked: string
  issuedBy: string
  createdAt: Date
  expiresAt: Date
  revokedAt: Date | null
}

/** The credentials of an email, newest first; with null those of every email. */
export async function listAdminKeys(query: Query, email: string | null): Promise<AdminKey[]> {
  const { rows } = await query<AdminKeyColumns>(
    `select ${columns} from admin_keys where $1::text is null or email = $1
     order by created_at desc, id limit 1000`,
    [email],
  )
  return rows.map(toAdminKey)
}

/** @returns false when the email (null: any) has no such credential; revoked again it stays revoked. */
export async function revokeAdminKey(
  query: Query,
  email: string | null,
  id: string,
): Promise<boolean> {
  const { rowCount } = await query(
    `update admin_keys set revoked_at = coalesce(revoked_at, now())
     where id = $2 and ($1::text is null or email = $1)`,
    [email, id],
  )
  return rowCount > 0
}

const columns = 'id, email, masked, issued_by, created_at, expires_at, revoked_at'

type AdminKeyColumns = {
  id: string
  email: string
  masked: string
  issued_by: string
  created_at: Date
  expires_at: Date
  revoked_at: Date | null
}

const toAdminKey = (row: AdminKeyColumns): AdminKey => ({
  id: row.id,
  email: row.email,
  masked: row.masked,
  issuedBy: row.issued_by,
  createdAt: row.created_at,
  expiresAt: row.expires_at,
  revokedAt: row.revoked_at,
})
