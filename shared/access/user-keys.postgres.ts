import {
  keyRowColumns,
  toKeyRow,
  type KeyColumns,
  type KeyRow,
} from '#shared/access/key-row.postgres.ts'
import { unexpiredCondition } from '#shared/access/revoked-key.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'

/** A user of an account, by the product's id. */
export type AccountUser = { account: string; externalId: string }

/** The key by which requests of a user are counted and billed, with its vault. */
export type UserKeyRow = {
  id: string
  hash: Buffer
  masked: string
  /** False: every key of the vault is revoked or expired. */
  isActive: boolean
  row: KeyRow
}

const activeSql = `(revoked_at is null and ${unexpiredCondition})`

/** Of the vault `v`, the key in use: an active one before others, then the newest. */
const keyInUseSql = `select *, ${activeSql} as is_active from memory_keys
  where vault = v.id and kind = 'vault'
  order by ${activeSql} desc, rotated_at is null desc, created_at desc, id desc limit 1`

/** Reads several users at once; answers are in the order of the questions, undefined for unknown users. */
export async function findUserKeys(
  query: Query,
  users: readonly AccountUser[],
): Promise<(UserKeyRow | undefined)[]> {
  type Columns = KeyColumns & Pick<UserKeyRow, 'id' | 'hash' | 'masked'>
  const { rows } = await query<Columns & { n: number; is_active: boolean }>(
    `select asked.n, k.id, k.hash, k.masked, k.is_active, ${keyRowColumns}
     from unnest($1::uuid[], $2::text[]) with ordinality asked(account, external_id, n)
     join vaults v on v.account = asked.account and v.external_id = asked.external_id
     join lateral (${keyInUseSql}) k on true
     join accounts a on a.id = v.account`,
    [users.map(({ account }) => account), users.map(({ externalId }) => externalId)],
    'account-users.find',
  )
  const found: (UserKeyRow | undefined)[] = users.map(() => undefined)
  for (const columns of rows) {
    const { n, id, hash, masked, is_active: isActive } = columns
    found[n - 1] = { id, hash, masked, isActive, row: toKeyRow(columns) }
  }
  return found
}

/** The key in use of a user, as it is shown. */
export type StoredUserKey = {
  id: string
  name: string
  masked: string
  /** The raw key, sealed to its id; null for one that was made without. */
  sealed: string | null
  isActive: boolean
  createdAt: Date
  expiresAt: Date | null
}

/** The key in use of a user; undefined for an unknown one. */
export async function findStoredUserKey(
  { query }: Transaction,
  { account, externalId }: AccountUser,
): Promise<StoredUserKey | undefined> {
  const { rows } = await query<StoredUserKey>(
    `select k.id, k.name, k.masked, k.sealed, k.is_active as "isActive",
            k.created_at as "createdAt", k.expires_at as "expiresAt"
     from vaults v join lateral (${keyInUseSql}) k on true
     where v.account = $1 and v.external_id = $2`,
    [account, externalId],
    'account-users.stored-key',
  )
  return rows[0]
}
