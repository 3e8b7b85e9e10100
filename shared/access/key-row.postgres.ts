import type { MemberScope } from '#shared/domain/member-scope.ts'
import type { StoragePolicy, TracePolicy } from '#shared/domain/account-policies.ts'
import type { RedactionPolicy } from '#shared/privacy/apply-redaction.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import { padArray } from '#shared/storage/postgres/padded-array.ts'

/**
 * `vault`: opens one vault and acts for its account. `member`: opens a member's private vault and
 * what they may see of the organization's; `user`: the private vault alone.
 */
export type MemoryKeyKind = 'vault' | 'member' | 'user'

/**
 * What a key of kind `vault` may do. `all`: what its vault lets it. `memory`: it opens its vault, makes no keys and does
 * nothing for the account. `users`: it opens the vaults of the account's users by X-Memory-User, and no other.
 */
export type KeyRights = 'all' | 'memory' | 'users'

/** All that a request needs to know of its key, the vault and the account. */
export type KeyRow = {
  vault: string
  account: string
  kind: MemoryKeyKind
  rights: KeyRights
  /** The vault was created with its account: its keys act for the account. */
  isOwnerVault: boolean
  /** Hash of the key whose rate limits it shares; null: limits of its own. */
  limitedAs: Buffer | null
  /** Requests, and tokens of model calls, that it may use in 24 hours; null: no limit. */
  dailyRequests: number | null
  dailyTokens: number | null
  /** Millionths of a dollar that model calls may cost in 30 days. */
  monthlyMicros: number | null
  /** For a member key: what it may see of the shared memory. */
  memberScope: MemberScope | null
  /** Another key replaced it: it works until the end of its grace period. */
  isRotated: boolean
  epoch: number
  revision: number
  /** The embedding model whose space holds the vault; null: the default model's. */
  embeddingModel: string | null
  paymentMethod: string | null
  balance: number | null
  /** Operations of the vault that are accepted and not done. */
  pending: number
  /** How private data is handled in what the key stores; null: it is stored. */
  redaction: RedactionPolicy | null
  /** Retention in days; null: forever. */
  retentionDays: number | null
  traces: TracePolicy
  storage: StoragePolicy
  /** The vault may hold expired memories: they are removed before anything is read. */
  hasExpired: boolean
  rawUnits: number
  rawTokens: number
  tier2Count: number
  tier2Importance: number
  tier2Tokens: number
}

/** SQL condition: the key `k` has not expired. */
export const unexpiredSql = '(k.expires_at is null or k.expires_at > now())'

/** SQL condition: where its organization demands a sign-in, one has made the key `k`. */
const signedInSql = `(k.org is null or k.signed_in
  or not (select o.sign_in_required from orgs o where o.id = k.org))`

/** SQL condition: the key `k` opens its vault now. */
export const activeSql = `(k.revoked_at is null and ${unexpiredSql} and ${signedInSql})`

/** SQL: the roles `r` of the member of `k`, who has none where it is the organization's own key. */
const rolesOfMember =
  'org_user_roles held join org_roles r on r.id = held.role and held.org_user = k.org_user'

/**
 * SQL of a `MemberScope`, by the current roles, where `k` has the columns `org` and `org_user`.
 *
 * @param roles SQL of the roles `r` that count
 */
const memberScopeSql = (roles = rolesOfMember): string => `
  select json_build_object(
    'org', o.id, 'memberId', coalesce(u.id, o.id), 'teamMemberId', coalesce(u.team_member_id, o.name),
    'orgVault', o.vault, 'orgEpoch', ov.epoch, 'orgRevision', ov.revision,
    'orgSpace', o.space, 'policyVersion', o.policy_version,
    'allowedTags', array_remove(visible.tags, '*'), 'wildcard', '*' = any(visible.tags)
  )
  from orgs o join vaults ov on ov.id = o.vault left join org_users u on u.id = k.org_user
  cross join lateral (select array(
    with allowed as (
      select a.label from ${roles}, unnest(r.allowed_tags) a(label)
    )
    select label from allowed
    union select f.label from allowed a join org_tags t on t.org = o.id and t.label = a.label,
                 unnest(t.former) f(label)) as tags) visible
  where o.id = k.org`

/** SQL of a limit of the key `k`: its own, else for a user's vault that of the account. */
const limitSql = (name: 'daily_requests' | 'daily_tokens' | 'monthly_micros'): string =>
  `coalesce(k.${name}, case when v.external_id is not null then a.user_${name} end)`

/** SQL of the limits of a `KeyRow`. */
export const limitsSql = `${limitSql('daily_requests')} as "dailyRequests",
  ${limitSql('daily_tokens')} as "dailyTokens", ${limitSql('monthly_micros')} as "monthlyMicros"`

/** Selects a `KeyRow` of the key `k`, its vault `v` and its account `a`. Only members cost a lookup. */
const keyRowColumns = `k.vault, k.account, k.kind, k.rights, v.owner as "isOwnerVault",
  k.limited_as as "limitedAs", ${limitsSql}, case when k.kind = 'member' then (${memberScopeSql()}) end as "memberScope",
  k.rotated_at is not null as "isRotated", v.epoch, v.revision, v.embeddings as "embeddingModel",
  a.payment_method as "paymentMethod", a.balance, v.pending,
  (select policy from (select case when k.org is null then a.redaction else
     coalesce((select redaction from orgs where id = k.org), a.redaction) end as policy) decided
   where policy->>'mode' <> 'off') as redaction,
  a.retention_days as "retentionDays",
  json_build_object('mode', a.traces, 'days', a.trace_days) as traces,
  json_build_object('verbatim', a.verbatim, 'responseWithInput', a.response_with_input,
                    'coreSessions', a.core_sessions, 'tellAbsence', a.tell_absence,
                    'keepFiles', a.keep_files) as storage,
  coalesce(v.next_expiry <= clock_timestamp(), false) as "hasExpired",
  v.raw_units as "rawUnits", v.raw_tokens as "rawTokens", v.tier2_count as "tier2Count",
  v.tier2_importance as "tier2Importance", v.tier2_tokens as "tier2Tokens"`

/** The key with this hash, as `findKeys` reads it. */
export async function findKey(query: Query, hash: Buffer): Promise<KeyRow | undefined> {
  return (await findKeys(query, [hash]))[0]
}

/**
 * Reads keys by their hashes, with their vaults and accounts as they are now. It is the one read of every
 * request, so that a revocation, a deletion or a write in another process applies from the next request on.
 *
 * @returns in the order of the hashes; undefined for a key that is unknown, revoked or expired.
 */
export async function findKeys(
  query: Query,
  hashes: readonly Buffer[],
): Promise<(KeyRow | undefined)[]> {
  const { rows } = await query<KeyRow & { n: number }>(
    `select asked.n, ${keyRowColumns}
     from unnest($1::bytea[]) with ordinality asked(hash, n)
     join memory_keys k on k.hash = asked.hash
     join vaults v on v.id = k.vault
     join accounts a on a.id = k.account
     where ${activeSql}`,
    [padArray(hashes)],
    'keys.find',
  )
  return inOrder(rows, hashes.length)
}

/** Whether a key that opens nothing now did so, or will, after a sign-in that its organization demands. */
export async function needsSignIn(query: Query, hash: Buffer): Promise<boolean> {
  const { rows } = await query(
    `select from memory_keys k join orgs o on o.id = k.org
     where k.hash = $1 and k.revoked_at is null and o.sign_in_required
       and (k.signed_in or ${unexpiredSql})`,
    [hash],
    'keys.needs-sign-in',
  )
  return rows.length > 0
}

function inOrder<Row extends { n: number }>(rows: readonly Row[], length: number) {
  const ordered = Array.from<Omit<Row, 'n'> | undefined>({ length })
  for (const { n, ...row } of rows) ordered[n - 1] = row
  return ordered
}

/** A user of an account, by the product's id. */
export type AccountUser = { account: string; externalId: string }

/** The key by which requests of a user are counted and billed, with its vault. */
export type UserKeyRow = KeyRow & {
  id: string
  hash: Buffer
  masked: string
  /** False: every key of the vault is revoked or expired. */
  isActive: boolean
}

/** The user's own key in use of the vault `v`: an active one before others, then the newest. */
export const keyInUseSql = `select k.*, ${activeSql} as "isActive" from memory_keys k
  where k.vault = v.id and k.kind = 'vault' and k.rights = 'all'
  order by ${activeSql} desc, rotated_at is null desc, created_at desc, id desc limit 1`

/** Reads the keys in use of several users, in their order; undefined for unknown users. */
export async function findUserKeys(
  query: Query,
  users: readonly AccountUser[],
): Promise<(UserKeyRow | undefined)[]> {
  const { rows } = await query<UserKeyRow & { n: number }>(
    `select asked.n, k.id, k.hash, k.masked, k."isActive", ${keyRowColumns}
     from unnest($1::uuid[], $2::text[]) with ordinality asked(account, external_id, n)
     join vaults v on v.account = asked.account and v.external_id = asked.external_id
     join lateral (${keyInUseSql}) k on true
     join accounts a on a.id = v.account`,
    [users.map(({ account }) => account), users.map(({ externalId }) => externalId)],
    'account-users.find',
  )
  return inOrder(rows, users.length)
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
    `select k.id, k.name, k.masked, k.sealed, k."isActive",
            k.created_at as "createdAt", k.expires_at as "expiresAt"
     from vaults v join lateral (${keyInUseSql}) k on true
     where v.account = $1 and v.external_id = $2`,
    [account, externalId],
    'account-users.stored-key',
  )
  return rows[0]
}

/** The current scope of the author of a turn; undefined once the turn is gone. */
export async function findAuthorScope(
  query: Query,
  turn: string,
): Promise<MemberScope | undefined> {
  const { rows } = await query<{ scope: MemberScope }>(
    `select (${memberScopeSql()}) as scope from (select org, org_user from org_turns where id = $1) k`,
    [turn],
    'members.author',
  )
  return rows[0]?.scope
}

/**
 * What the user of an account whose vault this is may see as a member: of the one organization of the account that has
 * a member of that name or email with a key that works. None where it demands a sign-in, which an owner key is not.
 */
export async function findTeamOfUser(
  query: Query,
  vault: string,
): Promise<MemberScope | undefined> {
  const { rows } = await query<{ scope: MemberScope }>(
    `select (${memberScopeSql()}) as scope from (
       select distinct k.org, k.org_user from vaults v
       join orgs o on o.account = v.account and not o.sign_in_required
       join org_users u on u.org = o.id and v.external_id in (u.team_member_id, u.email)
         and u.suspended_at is null
       join memory_keys k on k.org_user = u.id and k.kind = 'member' and ${activeSql}
       where v.id = $1) k`,
    [vault],
    'members.of-user',
  )
  return rows.length === 1 ? rows[0]!.scope : undefined
}

/**
 * What a user of an organization may see now; by `roles` what a member would see who has exactly these.
 *
 * @returns undefined where the organization has no such user.
 */
export async function findScopeOf(
  query: Query,
  org: string,
  viewer: { user: string } | { roles: readonly string[] },
): Promise<MemberScope | undefined> {
  const isUser = 'user' in viewer
  const rolesGiven =
    'unnest(k.roles) held(role) join org_roles r on r.id = held.role and r.org = k.org'
  const { rows } = await query<{ scope: MemberScope }>(
    isUser
      ? `select (${memberScopeSql()}) as scope
         from (select org, id as org_user from org_users where org = $1 and id = $2) k`
      : `select (${memberScopeSql(rolesGiven)}) as scope
         from (select $1::uuid as org, null::uuid as org_user, $2::uuid[] as roles) k`,
    [org, isUser ? viewer.user : viewer.roles],
  )
  return rows[0]?.scope
}
