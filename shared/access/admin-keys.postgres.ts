import { mintId } from '#shared/core/ids.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'

type AdminAccount = {
  email: string
  account: string | null
  /** The last use of the credential was noted within the last minute, or is not noted at all. */
  isNoted: boolean
}

/** The email and account of an admin credential that is neither expired nor revoked. */
export async function findAdmin(query: Query, hash: Buffer): Promise<AdminAccount | undefined> {
  const { rows } = await query<AdminAccount>(
    `select k.email, a.id as account,
            coalesce(k.last_used_at > now() - interval '1 minute', false) as "isNoted"
     from admin_keys k left join accounts a on a.email = k.email
     where k.hash = $1 and k.revoked_at is null and k.expires_at > now()`,
    [hash],
    'admin-keys.find',
  )
  return rows[0]
}

/** Notes that an issued admin credential was used now. */
export async function noteAdminUse(query: Query, hash: Buffer): Promise<void> {
  await query(
    'update admin_keys set last_used_at = now() where hash = $1',
    [hash],
    'admin-keys.note-use',
  )
}

/** The admin of an email that has been authenticated. */
export async function findAdminByEmail(query: Query, email: string): Promise<AdminAccount> {
  const { rows } = await query<{ account: string }>(
    'select id as account from accounts where email = $1',
    [email],
    'admin-keys.find-by-email',
  )
  return { email, account: rows[0]?.account ?? null, isNoted: true }
}

export type AdminKey = {
  id: string
  email: string
  masked: string
  issuedBy: string
  createdAt: Date
  expiresAt: Date
  revokedAt: Date | null
  /** To the minute. */
  lastUsedAt: Date | null
}

const columns = `id, email, masked, issued_by as "issuedBy", created_at as "createdAt",
  expires_at as "expiresAt", revoked_at as "revokedAt", last_used_at as "lastUsedAt"`

export type NewAdminKey = {
  /** Generated when missing. */
  id?: string
  hash: Buffer
  email: string
  masked: string
  issuedBy: string
  expiresAt: Date
}

/**
 * Inserts a credential. A second insert under the same id replaces the first, whose response was
 * lost.
 *
 * @returns the account of its email, and whether the credential is new.
 */
export async function insertAdminKey(
  query: Query,
  key: NewAdminKey,
): Promise<{ adminKey: AdminKey; account: string | null; isNew: boolean }> {
  const { rows } = await query<AdminKey & { account: string | null; isNew: boolean }>(
    `insert into admin_keys (id, hash, email, masked, issued_by, expires_at)
     values ($1, $2, $3, $4, $5, $6)
     on conflict (id) do update set hash = excluded.hash, masked = excluded.masked
     returning ${columns}, xmax = 0 as "isNew",
       (select a.id from accounts a where a.email = admin_keys.email) as account`,
    [key.id ?? mintId(), key.hash, key.email, key.masked, key.issuedBy, key.expiresAt],
  )
  const { account, isNew, ...adminKey } = rows[0]!
  return { adminKey, account, isNew }
}

/** The credentials of an email, newest first; null for all emails. */
export async function listAdminKeys(query: Query, email: string | null): Promise<AdminKey[]> {
  const { rows } = await query<AdminKey>(
    `select ${columns} from admin_keys where $1::text is null or email = $1
     order by created_at desc, id limit 1000`,
    [email],
  )
  return rows
}

/**
 * Revokes a credential; a second call keeps the time of the first.
 *
 * @param email null: of any email
 * @returns undefined when the email has no such credential.
 */
export async function updateAdminKeyRevoked(
  query: Query,
  email: string | null,
  id: string,
): Promise<{ masked: string; account: string | null; wasRevoked: boolean } | undefined> {
  const { rows } = await query<{ masked: string; account: string | null; wasRevoked: boolean }>(
    `with found as (
       select id, revoked_at is not null as was_revoked from admin_keys
       where id = $2 and ($1::text is null or email = $1) for update
     )
     update admin_keys k set revoked_at = coalesce(k.revoked_at, now())
     from found where k.id = found.id
     returning k.masked, found.was_revoked as "wasRevoked",
       (select a.id from accounts a where a.email = k.email) as account`,
    [email, id],
  )
  return rows[0]
}
