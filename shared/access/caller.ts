import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { expiredRemain } from '#shared/core/refusals.ts'
import {
  hashKey,
  looksLikeKey,
  maskKey,
  intersectModes,
  parseKey,
  permissionsByMode,
  type KeyMode,
  type Permissions,
} from '#shared/access/key.ts'
import { budgetsOf, type Budget } from '#shared/access/budgets.ts'
import type { VaultScope } from '#shared/domain/memory.ts'
import { isOrganizationKey, type MemberScope } from '#shared/domain/member-scope.ts'
import type { MemoryKeyKind, KeyRow, UserKeyRow } from '#shared/access/key-row.postgres.ts'

/** An authenticated key: its rights, and the scope it may touch. */
export type Caller = {
  keyHash: Buffer
  /** The masked key, as answers show it. */
  maskedKey: string
  kind: MemoryKeyKind
  mode: KeyMode
  permissions: Permissions
  /** The account that pays: for a member key, the owner of the organization. */
  account: string
  /** The vault of the key; a member's private one. */
  scope: VaultScope
  /** The part of the shared memory that a member key may see; null for every other key. */
  memberScope: MemberScope | null
  /** The owner key, masked, that opened the vault of one of its users by X-Memory-User; else null. */
  ownerKey: string | null
  /** The caller that this owner key is by itself. */
  owner?: Caller
  /** The vaults of a question that names some; that of a team is `memberScope`. */
  asked?: {
    /** Whose the vault of `scope` is, and whether it is searched. */
    main: 'own' | 'user'
    searchesMain: boolean
    /** The owner's, of which the core is searched, in the space of this model. */
    owner?: { scope: VaultScope; embeddings: string | undefined }
  }
  /** The budgets of the key; with X-Memory-User those of the key that names the user, then of the user. */
  budgets: readonly Budget[]
  /** An owner looks, which is no use: nothing is billed, counted against a budget, or logged as a call. */
  inspects?: boolean
  /** The vault, its debt and its account, as they were when the request was authenticated. */
  keyRow: KeyRow
}

/**
 * Finds the one Memory Key of a request. When it is sent twice with different suffixes, it may do
 * what both allow.
 *
 * @param credentials headers that may carry a key; values as sent
 * @throws Refusal `unauthenticated` when there is none, or when two headers carry different keys.
 */
export function extractMemoryKey(credentials: {
  memoryKey: string | undefined
  authorization: string | undefined
  apiKey: string | undefined
}): { key: string; mode: KeyMode } {
  const { memoryKey, authorization, apiKey } = credentials
  const memoryKeys = [memoryKey, authorization, apiKey].filter(
    (value): value is string => value !== undefined && looksLikeKey(value),
  )
  if (memoryKeys.length === 0) throw unauthenticatedRefusal('No Memory Key in the request')
  return memoryKeys.map(requireParsedKey).reduce((one, other) => {
    if (one.key !== other.key)
      throw unauthenticatedRefusal('Two different Memory Keys in one request')
    return { key: one.key, mode: intersectModes(one.mode, other.mode) }
  })
}

function requireParsedKey(presented: string): { key: string; mode: KeyMode } {
  const parsed = parseKey(presented)
  if (parsed) return parsed
  throw unauthenticatedRefusal('Invalid Memory Key')
}

/**
 * Resolves a key to its caller. Unknown, revoked and expired keys are refused in the same words.
 *
 * @throws Refusal `unauthenticated`.
 */
export const authenticateMemoryKey = (
  find: (hash: Buffer) => Promise<KeyRow | undefined>,
  pepper: string,
  { key, mode }: { key: string; mode: KeyMode },
): Promise<Caller> =>
  authenticateKeyHash(find, { keyHash: hashKey(pepper, key), maskedKey: maskKey(key), mode })

/**
 * As `authenticateMemoryKey`, where the key itself is not at hand.
 *
 * @param lacksSignIn whether a key that is not found would open its vault after a sign-in: it is told so
 */
export async function authenticateKeyHash(
  find: (hash: Buffer) => Promise<KeyRow | undefined>,
  presented: PresentedKey,
  lacksSignIn?: (hash: Buffer) => Promise<boolean>,
): Promise<Caller> {
  const row = await find(presented.keyHash)
  if (row) return callerOf(row, presented)
  if (!(await lacksSignIn?.(presented.keyHash))) throw unauthenticatedRefusal('Invalid Memory Key')
  throw refusal('unauthenticated', 'signInNeeded')
}

/** A key as it was presented, and what of its rights it is used with. */
export type PresentedKey = { keyHash: Buffer; maskedKey: string; mode: KeyMode }

/** The caller that a key's row makes. */
export function callerOf(row: KeyRow, { keyHash, maskedKey, mode }: PresentedKey): Caller {
  const { kind, memberScope, account, vault, epoch, revision } = row
  const allowed =
    memberScope && isOrganizationKey(memberScope) ? intersectModes(mode, 'read') : mode
  return {
    keyHash,
    maskedKey,
    kind,
    mode: allowed,
    permissions: permissionsByMode[allowed],
    account,
    scope: { vault, epoch, revision },
    memberScope,
    ownerKey: null,
    budgets: budgetsOf(row, row.limitedAs ?? keyHash),
    keyRow: row,
  }
}

/** The actor in the account's events. */
export const actorOf = ({ ownerKey, maskedKey }: Pick<Caller, 'ownerKey' | 'maskedKey'>): string =>
  ownerKey ?? maskedKey

/**
 * The caller for a user of the account of an owner key: the rights are those of the owner's request, all else
 * is the user's.
 */
export const toUserCaller = (owner: Caller, row: UserKeyRow): Caller => ({
  ...owner,
  keyHash: row.hash,
  maskedKey: row.masked,
  account: row.account,
  scope: { vault: row.vault, epoch: row.epoch, revision: row.revision },
  memberScope: null,
  ownerKey: owner.maskedKey,
  owner,
  budgets: owner.inspects ? [] : [...owner.budgets, ...budgetsOf(row, row.limitedAs ?? row.hash)],
  keyRow: row,
})

/** An owner key that looks at its own vault, or at that of a user. */
export const toInspecting = (owner: Caller): Caller => ({ ...owner, budgets: [], inspects: true })

/** Whether a key may name users of its account; its suffix may narrow what it does for them. */
export const mayNameUsers = ({ kind, keyRow }: Caller): boolean =>
  kind === 'vault' && keyRow.isOwnerVault && keyRow.rights !== 'memory'

/** Whether a key opens a vault only where the request names its user. */
const needsUser = ({ ownerKey, keyRow }: Caller): boolean =>
  ownerKey === null && keyRow.rights === 'users'

/**
 * Requires the user that a key for users has to name: without one the vault of its owner would be shared by all.
 *
 * @throws Refusal `invalid`.
 */
export function requireNamedUser(caller: Caller): void {
  if (!needsUser(caller)) return
  throw refusal('invalid', 'userNotNamed')
}

/**
 * Refuses to do for a user what concerns the whole account.
 *
 * @throws Refusal `invalid` for a request with X-Memory-User.
 */
function rejectNamedUser({ ownerKey }: Caller): void {
  if (ownerKey !== null) throw refusal('invalid', 'userNamedForAccount')
}

const unauthenticatedRefusal = (message: string): Refusal =>
  new Refusal(
    'unauthenticated',
    message,
    'Send your Memory Key as "Authorization: Bearer mk_…", "x-api-key: mk_…" or "X-Memory-Key: mk_…"; ' +
      'the suffixes are :read, :write and :off. Admin keys open /v1/orgs, not memory',
  )

/** Hash of the key whose rate limits a key shares: its own, or that of the user's key that minted it. */
export const limitSubjectOf = ({ keyHash, keyRow }: Pick<Caller, 'keyHash' | 'keyRow'>): Buffer =>
  keyRow.limitedAs ?? keyHash

/** Whether the key acts for its whole account, and not for one vault. */
export const isOwnerKey = ({ kind, mode, keyRow }: Caller): boolean =>
  kind === 'vault' && mode === 'on' && keyRow.isOwnerVault && keyRow.rights === 'all'

/**
 * Requires an owner key with all rights, which acts for its account.
 *
 * @throws Refusal `forbidden` for keys minted by POST /v1/keys, member keys and keys with fewer rights.
 */
export function requireOwner(caller: Caller): void {
  if (isOwnerKey(caller)) return
  rejectNamedUser(caller)
  throw refusal('forbidden', 'notOwnerKey')
}

/**
 * Requires a key of the account itself with all rights: it may create further keys, each with its
 * own vault.
 *
 * @throws Refusal `forbidden` for member keys and keys with fewer rights.
 */
export function requireMintPermission(caller: Caller): void {
  rejectNamedUser(caller)
  const { kind, mode, keyRow } = caller
  if (kind === 'vault' && mode === 'on' && keyRow.rights === 'all') return
  throw refusal('forbidden', 'keyMakesNoKeys')
}

/**
 * Refuses a rotated key. In its grace period it serves clients that still have it, but may not
 * create what would outlive it.
 *
 * @throws Refusal `forbidden` once another key has replaced it.
 */
export function requireNotRotated({ keyRow }: Pick<Caller, 'keyRow'>): void {
  if (keyRow.isRotated) throw refusal('forbidden', 'keyRotated')
}

/**
 * @throws Refusal `forbidden` when the key's suffix excludes reading; `unavailable` while the vault
 *   holds expired memories.
 */
export function requireRetrievePermission(caller: Caller): void {
  const { permissions, mode } = caller
  if (permissions.retrieve) return requireNothingExpired(caller)
  throw refusal('forbidden', 'keyDoesNotRead', { mode })
}

/** The same for an endpoint that without the right finds nothing. */
export function requireReadableVault(caller: Caller): void {
  if (caller.permissions.retrieve) requireNothingExpired(caller)
}

/**
 * @throws Refusal `unavailable` while expired memories could not be removed: they must not be read.
 */
export function requireNothingExpired({ keyRow }: Pick<Caller, 'keyRow'>): void {
  if (!keyRow.hasExpired) return
  throw expiredRemain()
}

/** Why a key that may not store does not, and what would: the message and hint of a refusal. */
export function whyNotStored({
  mode,
  memberScope,
}: Pick<Caller, 'mode' | 'memberScope'>): [message: string, hint: string] {
  if (memberScope && isOrganizationKey(memberScope))
    return ['The key of an organization itself does not store memory', 'Use the key of a member']
  return [
    `This key is used with :${mode}, which does not store memory`,
    'Use the key without a suffix or with :write',
  ]
}

/** @throws Refusal `forbidden` when the key or its suffix excludes storing. */
export function requireStorePermission(caller: Caller): void {
  if (!caller.permissions.store) throw new Refusal('forbidden', ...whyNotStored(caller))
}
