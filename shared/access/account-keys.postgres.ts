import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'

/** A key of the account itself, without any secret. */
export type AccountKey = {
  id: string
  hash: Buffer
  masked: string
  name: string
  active: boolean
  createdAt: Date
  expiresAt: Date | null
  revokedAt: Date | null
  /** When another key replaced it. */
  rotatedAt: Date | null
  /** When it was last used to read, store or call a model. */
  lastUsedAt: Date | null
}

const activeCondition = '(k.revoked_at is null and (k.expires_at is null or k.expires_at > now()))'

/** Keys of an account itself, newest first, without members' keys. */
export async function listAccountKeys(
  query: Query,
  account: string,
  filter: {
    active: boolean | undefined
    /** The id of the last key of the page before. */
    after: string | undefined
    limit: number
  },
): Promise<AccountKey[]> {
  const { active, after, limit } = filter
  const { rows } = await query<AccountKey>(
    `select k.id, k.hash, k.masked, k.name, ${activeCondition} as active, k.created_at as "createdAt",
            k.expires_at as "expiresAt", k.revoked_at as "revokedAt", k.rotated_at as "rotatedAt",
            (select max(e.at) from usage_events e where e.key_hash = k.hash) as "lastUsedAt"
     from memory_keys k
     where k.account = $1 and k.kind = 'vault' and ($2::boolean is null or ${activeCondition} = $2)
       and ($3::uuid is null
            or (k.created_at, k.id) < (select created_at, id from memory_keys where id = $3))
     order by k.created_at desc, k.id desc limit $4`,
    [account, active ?? null, after ?? null, limit],
    'account-keys.list',
  )
  return rows
}

/** One key of an account itself, or undefined. */
export async function findAccountKey(
  query: Query,
  account: string,
  id: string,
): Promise<{ hash: Buffer; vault: string } | undefined> {
  const { rows } = await query<{ hash: Buffer; vault: string }>(
    `select hash, vault from memory_keys where id = $1 and account = $2 and kind = 'vault'`,
    [id, account],
  )
  return rows[0]
}

/** Whether any key opens a vault now. */
export async function hasActiveKey({ query }: Transaction, vault: string): Promise<boolean> {
  const { rowCount } = await query(
    `select from memory_keys k where k.vault = $1 and ${activeCondition} limit 1`,
    [vault],
  )
  return rowCount > 0
}
