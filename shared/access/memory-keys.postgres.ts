import {
  activeSql,
  limitsSql,
  keyInUseSql,
  unexpiredSql,
  type KeyRights,
  type KeyRow,
  type MemoryKeyKind,
} from '#shared/access/key-row.postgres.ts'
import { revokedKeyColumns, type RevokedKey } from '#shared/access/revoked-key.ts'
import { mintId } from '#shared/core/ids.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'

export type NewKey = {
  /** Generated when missing. */
  id?: string
  hash: Buffer
  vault: string
  /** The account that pays. */
  account: string
  kind: MemoryKeyKind
  /** All, when missing. */
  rights?: KeyRights
  name: string
  masked: string
  /** Never, when missing. */
  expiresAt?: Date | null
  /** Hash of the key whose rate limits it shares; limits of its own, when missing. */
  limitedAs?: Buffer | null
  /** The raw key, sealed to its id; null when it is shown only once. */
  sealed?: string | null
  /** The organization of a member's key. */
  org?: string
  /** The member; null for the organization's own key. */
  user?: string | null
  /** Whether what is stored with it may be shared; true, when missing. */
  shares?: boolean
  /** A sign-in at the login provider makes it. */
  signedIn?: boolean
}

/** Inserts a key, with the budget of the key whose limits it shares. @returns when it was created. */
export async function insertKey({ query }: Transaction, key: NewKey): Promise<Date> {
  const { rows } = await query<{ createdAt: Date }>(
    `insert into memory_keys (hash, vault, account, kind, name, masked, expires_at, limited_as, id,
                              sealed, org, org_user, shares, rights, signed_in, daily_requests,
                              daily_tokens, monthly_micros)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15,
             (select daily_requests from memory_keys where hash = $8),
             (select daily_tokens from memory_keys where hash = $8),
             (select monthly_micros from memory_keys where hash = $8))
     returning created_at as "createdAt"`,
    [
      key.hash,
      key.vault,
      key.account,
      key.kind,
      key.name,
      key.masked,
      key.expiresAt ?? null,
      key.limitedAs ?? null,
      key.id ?? mintId(),
      key.sealed ?? null,
      key.org ?? null,
      key.user ?? null,
      key.shares ?? true,
      key.rights ?? 'all',
      key.signedIn ?? false,
    ],
  )
  return rows[0]!.createdAt
}

/** A key of the account itself, without any secret. */
export type AccountKey = {
  id: string
  hash: Buffer
  masked: string
  name: string
  rights: KeyRights
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
} & KeyLimits

/** What a key may use in 24 hours, and in 30 days; null: no limit. */
export type KeyLimits = Pick<KeyRow, 'dailyRequests' | 'dailyTokens' | 'monthlyMicros'> & {
  /** Hash of the key that counts it. */
  subject: Buffer
}

/** SQL of the `KeyLimits` of the key `k`, with its vault `v` and its account `a`. */
const limitColumns = `coalesce(k.limited_as, k.hash) as subject, ${limitsSql}`

/** Keys of an account itself, newest first, without members' keys. */
export async function listAccountKeys(
  query: Query,
  account: string,
  filter: {
    active: boolean | undefined
    /** Keys of this user only. */
    externalId: string | undefined
    /** One key only. */
    id?: string
    /** The id of the last key of the page before. */
    after: string | undefined
    limit: number
  },
): Promise<AccountKey[]> {
  const { active, externalId, after, limit } = filter
  const { rows } = await query<AccountKey>(
    `select k.id, k.hash, k.masked, k.name, k.rights, v.external_id as "externalId",
            ${activeSql} as active, k.created_at as "createdAt",
            k.expires_at as "expiresAt", k.revoked_at as "revokedAt", k.rotated_at as "rotatedAt",
            (select max(e.at) from usage_events e where e.key_hash = k.hash) as "lastUsedAt",
            ${limitColumns}
     from memory_keys k join vaults v on v.id = k.vault join accounts a on a.id = k.account
     where k.account = $1 and k.kind = 'vault' and ($5::text is null or v.external_id = $5)
       and ($2::boolean is null or ${activeSql} = $2) and ($6::uuid is null or k.id = $6)
       and ($3::uuid is null
            or (k.created_at, k.id) < (select created_at, id from memory_keys where id = $3))
     order by k.created_at desc, k.id desc limit $4`,
    [account, active ?? null, after ?? null, limit, externalId ?? null, filter.id ?? null],
    'account-keys.list',
  )
  return rows
}

/** Keys of an account by their ids, those of members too, in any order. */
export async function findKeysById(
  query: Query,
  account: string,
  ids: readonly string[],
): Promise<(Pick<AccountKey, 'id' | 'masked' | 'name'> & KeyLimits)[]> {
  const { rows } = await query<Pick<AccountKey, 'id' | 'masked' | 'name'> & KeyLimits>(
    `select k.id, k.masked, k.name, ${limitColumns}
     from memory_keys k join vaults v on v.id = k.vault join accounts a on a.id = k.account
     where k.id = any($2::uuid[]) and k.account = $1`,
    [account, ids],
    'account-keys.by-id',
  )
  return rows
}

/** A user of an account, with the key that counts what they use. */
export type ListedUser = {
  vault: string
  externalId: string
  keyId: string
  name: string
  active: boolean
  createdAt: Date
  lastUsedAt: Date | null
} & KeyLimits & {
    vault: string
    epoch: number
    revision: number
    /** Sessions of which everything up to an epoch is cleared and not removed yet. */
    clearedSessions: { session: string; upTo: number }[]
    /** Some of its memories have expired and may not be removed yet. */
    hasExpired: boolean
  }

/** Users of an account, newest first. */
export async function listUsers(
  query: Query,
  account: string,
  filter: {
    /** A part of the id, or of the name of a key of the user, in any case. */
    search: string | undefined
    /** The vault of the last user of the page before. */
    after: string | undefined
    limit: number
    /** The user of exactly this id. */
    externalId?: string
  },
): Promise<ListedUser[]> {
  const { search, after, limit, externalId } = filter
  const { rows } = await query<ListedUser>(
    `with page as (
       select id, account, external_id, created_at, epoch, revision, next_expiry from vaults v
       where account = $1 and external_id is not null and ($3::uuid is null or id < $3)
         and ($5::text is null or external_id = $5)
         and ($2::text is null or position(lower($2) in lower(external_id)) > 0
              or exists (select from memory_keys k
                         where k.vault = v.id and position(lower($2) in lower(k.name)) > 0))
       order by id desc limit $4
     )
     select v.id as vault, v.external_id as "externalId", v.created_at as "createdAt",
            k.id as "keyId", k.name, k."isActive" as active, ${limitColumns},
            (select max(e.at) from usage_events e where e.key_hash = k.hash) as "lastUsedAt",
            v.epoch, v.revision, coalesce(v.next_expiry <= now(), false) as "hasExpired",
            (select coalesce(json_agg(json_build_object('session', e.session, 'upTo', e.up_to)), '[]')
             from erasures e
             where e.vault = v.id and e.session <> '' and e.due_at = 'infinity') as "clearedSessions"
     from page v join accounts a on a.id = v.account join lateral (${keyInUseSql}) k on true
     order by v.id desc`,
    [account, search ?? null, after ?? null, limit, externalId ?? null],
    'account-users.list',
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
  rights: KeyRights
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
    `select k.vault, k.rights, k.name, v.owner as "isOwnerVault", v.external_id as "externalId",
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

/** Whether any key opens a vault now. */
export async function hasActiveKey({ query }: Transaction, vault: string): Promise<boolean> {
  const { rowCount } = await query(
    `select from memory_keys k where k.vault = $1 and ${activeSql} limit 1`,
    [vault],
  )
  return rowCount > 0
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
     select ${revokedKeyColumns} from revoked k where ${unexpiredSql}`,
    [vault],
    'account-keys.revoke-of-vault',
  )
  return rows
}

/**
 * Revokes a key of an account; it is refused from the next request on. The keys that a user's key made for
 * clients end with it.
 *
 * @returns those that were live.
 */
export async function revokeKey(
  query: Query,
  account: string,
  hash: Buffer,
): Promise<RevokedKey[]> {
  const { rows } = await query<RevokedKey>(
    `with asked as (
       select k.vault from memory_keys k join vaults v on v.id = k.vault
       where k.hash = $1 and k.account = $2 and k.rights = 'all' and not v.owner
     ), revoked as (
       update memory_keys k set revoked_at = now()
       where k.account = $2 and k.revoked_at is null
         and (k.hash = $1 or k.rights <> 'all' and k.vault in (select vault from asked))
       returning *
     )
     select ${revokedKeyColumns} from revoked k where ${unexpiredSql}`,
    [hash, account],
  )
  return rows
}

export type PreviousKey = RevokedKey & {
  /** Hash of the key whose rate limits it shares: its own, or that of an earlier one. */
  limitedAs: Buffer
  expiresAt: Date
  /** False when the key was to expire earlier anyway. */
  expiresSooner: boolean
  hasExpired: boolean
}

/**
 * Sets a live key to expire after this many seconds at the latest, since another key replaces it.
 *
 * @returns undefined when the key is not live any more, or was replaced before.
 */
export async function expireRotatedKey(
  { query }: Transaction,
  hash: Buffer,
  seconds: number,
): Promise<PreviousKey | undefined> {
  const { rows } = await query<PreviousKey>(
    `with live as (
       select k.hash, k.expires_at as former_expiry from memory_keys k
       where k.hash = $1 and ${activeSql} and k.rotated_at is null for no key update
     ), rotated as (
       update memory_keys k
       set expires_at = least(expires_at, now() + make_interval(secs => $2)), rotated_at = now()
       from live where k.hash = live.hash returning k.*, live.former_expiry
     )
     select ${revokedKeyColumns}, expires_at as "expiresAt",
            coalesce(limited_as, hash) as "limitedAs",
            expires_at is distinct from former_expiry as "expiresSooner",
            expires_at <= now() as "hasExpired"
     from rotated`,
    [hash, seconds],
  )
  return rows[0]
}

/** Whether another key replaced this one, and it was not revoked. */
export async function isRotatedKey(query: Query, hash: Buffer): Promise<boolean> {
  const { rowCount } = await query(
    `select from memory_keys
     where hash = $1 and kind = 'vault' and rotated_at is not null and revoked_at is null`,
    [hash],
  )
  return rowCount > 0
}
