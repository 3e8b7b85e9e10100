import {
  revokedKeyColumns,
  unexpiredCondition,
  type RevokedKey,
} from '#shared/access/revoked-key.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'

/** A key of the account itself, without any secret. */
export type AccountKey = {
  id: string
  hash: Buffer
  masked: string
  name: string
  /** The product's id of the user whose vault it opens; null for any other vault. */
  externalId: string | null
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
    /** Of one user only. */
    externalId: string | undefined
    /** The id of the last key of the page before. */
    after: string | undefined
    limit: number
  },
): Promise<AccountKey[]> {
  const { active, externalId, after, limit } = filter
  const { rows } = await query<AccountKey>(
    `select k.id, k.hash, k.masked, k.name, v.external_id as "externalId",
            ${activeCondition} as active, k.created_at as "createdAt",
            k.expires_at as "expiresAt", k.revoked_at as "revokedAt", k.rotated_at as "rotatedAt",
            (select max(e.at) from usage_events e where e.key_hash = k.hash) as "lastUsedAt"
     from memory_keys k join vaults v on v.id = k.vault
     where k.account = $1 and k.kind = 'vault' and ($5::text is null or v.external_id = $5) and ($2::boolean is null or ${activeCondition} = $2)
       and ($3::uuid is null
            or (k.created_at, k.id) < (select created_at, id from memory_keys where id = $3))
     order by k.created_at desc, k.id desc limit $4`,
    [account, active ?? null, after ?? null, limit, externalId ?? null],
    'account-keys.list',
  )
  return rows
}

/** One key of an account itself, or undefined. */
export async function findAccountKey(
  query: Query,
  account: string,
  id: string,
): Promise<{ hash: Buffer; vault: string; masked: string } | undefined> {
  const { rows } = await query<{ hash: Buffer; vault: string; masked: string }>(
    `select hash, vault, masked from memory_keys where id = $1 and account = $2 and kind = 'vault'`,
    [id, account],
  )
  return rows[0]
}

/** A key that may get another in its place. */
export type ReplaceableKey = {
  vault: string
  name: string
  /** Its vault was created with the account. */
  isOwnerVault: boolean
  /** The product's id of the user whose vault it opens; null for any other vault. */
  externalId: string | null
  /** Hash of the key whose rate limits it shares: its own, or that of an earlier one. */
  limitedAs: Buffer
  /** Its vault was erased. */
  isErased: boolean
}

/** A key of an account, as it is once its vault is locked; undefined when there is none. */
export async function findReplaceableKey(
  { query }: Transaction,
  account: string,
  id: string,
): Promise<ReplaceableKey | undefined> {
  const { rows } = await query<ReplaceableKey>(
    `select k.vault, k.name, v.owner as "isOwnerVault", v.external_id as "externalId",
            coalesce(k.limited_as, k.hash) as "limitedAs",
            exists (select from erasures e
                    where e.vault = v.id and e.session = '' and e.up_to >= v.epoch) as "isErased"
     from memory_keys k join vaults v on v.id = k.vault
     where k.id = $1 and k.account = $2 and k.kind = 'vault'`,
    [id, account],
    'account-keys.replaceable',
  )
  return rows[0]
}

/** Revokes every key of a vault. @returns those that were live. */
export async function revokeVaultKeys(
  { query }: Transaction,
  vault: string,
): Promise<RevokedKey[]> {
  const { rows } = await query<RevokedKey>(
    `with revoked as (
       update memory_keys set revoked_at = now() where vault = $1 and revoked_at is null returning *
     )
     select ${revokedKeyColumns} from revoked where ${unexpiredCondition}`,
    [vault],
    'account-keys.revoke-of-vault',
  )
  return rows
}

/** Whether any key opens a vault now. */
export async function hasActiveKey({ query }: Transaction, vault: string): Promise<boolean> {
  const { rowCount } = await query(
    `select from memory_keys k where k.vault = $1 and ${activeCondition} limit 1`,
    [vault],
  )
  return rowCount > 0
}
