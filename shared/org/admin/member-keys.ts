import { insertVault } from '#shared/access/accounts.postgres.ts'
import { hashKey, looksLikeKey, maskKey, maskMemberKey, mintKey } from '#shared/access/key.ts'
import {
  findMemberKey,
  findOrgKey,
  listMemberKeys,
  revokeMemberKey,
  revokeUserKeys,
  type KeyHolder,
  type MemberKeyRow,
} from '#shared/access/member-keys.postgres.ts'
import { insertKey } from '#shared/access/memory-keys.postgres.ts'
import { storeKey } from '#shared/access/mint.ts'
import { announceRevokedKeys } from '#shared/access/revoked-key.ts'
import type { Config } from '#shared/core/config.ts'
import type { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { mintId } from '#shared/core/ids.ts'
import { noSuchKey } from '#shared/core/refusals.ts'
import type { Seal } from '#shared/core/seal.ts'
import { ensureUser, requireUser } from '#shared/org/admin/user.ts'
import type { UserRow } from '#shared/org/base/users.postgres.ts'
import type { OrgRow } from '#shared/org/base/orgs.postgres.ts'
import { changePolicy, recordPolicyEvent, type OrgAdmin } from '#shared/org/base/policy-change.ts'
import type { Postgres, Query, Transaction } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'

type SealBackend = { config: Config; seal: Seal }
type MintBackend = SealBackend & { postgres: Postgres }
type KeyBackend = { postgres: Postgres; config: Config; queue: Queue }

/** A member key with its raw form. */
export type RevealedMemberKey = MemberKeyRow & { key: string }

/**
 * Mints a key of a member, and creates the member where the organization has none of that name. Repeated under the
 * same operation it returns the same key.
 *
 * @param operation becomes the key's id
 * @param shares false: what the member says with it is not shared
 * @throws Refusal `missing`; `conflict` when the key cannot be shown any more.
 */
export const mintMemberKey = (
  backend: MintBackend,
  { admin, org }: OrgAdmin,
  operation: string,
  { teamMemberId, shares }: { teamMemberId: string; shares: boolean },
): Promise<RevealedMemberKey> =>
  changePolicy(backend, { admin, org }, async tx => {
    const existing = await findMemberKey(tx.query, org, { id: operation })
    if (existing) return { ...existing, key: unsealKey(backend, existing) }
    const user = requireActive(await ensureUser(tx, { admin, org }, teamMemberId))
    const { account } = admin
    const newKey = { id: operation, org, user: user.id, account, vault: user.vault, shares }
    const named = { ...newKey, name: user.teamMemberId }
    const key = await insertSealedKey(tx, backend, named, admin.email)
    return { ...(await findMemberKey(tx.query, org, { id: operation }))!, key }
  })

/** @throws Refusal `conflict` for a member whom the directory has switched off. */
function requireActive(user: UserRow): UserRow {
  if (user.active) return user
  throw refusal('conflict', 'memberSwitchedOff')
}

/**
 * Mints the key of a member who has just signed in.
 *
 * @param hours after which it ends; null: it lasts, as the keys do that an admin mints
 * @returns its raw form, and its id
 * @throws Refusal `missing`; `conflict` for a member whom the directory has switched off.
 */
export const mintSignInKey = (
  backend: MintBackend,
  { admin, org }: OrgAdmin,
  { user: id, hours, now }: { user: string; hours: number | null; now: number },
): Promise<{ key: string; id: string }> =>
  changePolicy(backend, { admin, org }, async tx => {
    const user = requireActive(await requireUser(tx.query, org, id))
    const expiresAt = hours === null ? null : new Date(now + hours * 3_600_000)
    const { account } = admin
    const names = {
      id: mintId(),
      org,
      user: id,
      account,
      vault: user.vault,
      name: user.teamMemberId,
    }
    const row = { ...names, expiresAt, signedIn: hours !== null }
    return { key: await insertSealedKey(tx, backend, row, admin.email), id: row.id }
  })

/**
 * Lists keys of members, revoked ones too, without their raw form.
 *
 * @param q a whole key, or a part in any case of the masked form, the id, or a name or email of the member
 */
export async function searchMemberKeys(
  { postgres: { query }, config }: { postgres: Postgres; config: Config },
  org: string,
  q = '',
): Promise<MemberKeyRow[]> {
  const exact = looksLikeKey(q) && (await findMemberKey(query, org, toReference(config, q)))
  if (exact && exact.user) return [exact]
  const rows = await listMemberKeys(query, org)
  const needle = toSearchForm(q)
  return rows.filter(row => searchableFields(row).some(text => toSearchForm(text).includes(needle)))
}

/** Makes case and composition of accents equal. */
const toSearchForm = (text: string): string => text.normalize('NFC').toLowerCase()

const searchableFields = (row: MemberKeyRow & KeyHolder): string[] => [
  row.id,
  row.masked,
  maskMemberKey(row.masked),
  row.teamMemberId,
  row.email,
  `${row.firstName} ${row.lastName}`.trim(),
]

/**
 * Reads a member key with its raw form, with an event of the account.
 *
 * @param keyReference its id, or the key itself
 * @throws Refusal `missing`; `conflict` when it cannot be shown any more.
 */
export const readMemberKey = (
  backend: MintBackend,
  scope: OrgAdmin,
  keyReference: string,
): Promise<RevealedMemberKey> =>
  backend.postgres.transaction(async tx => {
    const row = await requireMemberKey(tx.query, backend, scope.org, keyReference)
    const key = unsealKey(backend, row)
    await recordPolicyEvent(tx, scope, {
      action: 'key.revealed',
      subject: row.masked,
      before: null,
      after: { key_id: row.id, team_member_id: row.teamMemberId },
    })
    return { ...row, key }
  })

/**
 * Revokes a member key, or the organization's own: every process refuses the next request with it.
 *
 * @param keyReference its id, or the key itself
 * @returns its id
 * @throws Refusal `missing`.
 */
export const revokeOrgMemberKey = (
  backend: KeyBackend,
  { admin, org }: OrgAdmin,
  keyReference: string,
): Promise<string> =>
  changePolicy(backend, { admin, org }, async tx => {
    const row = await findMemberKey(tx.query, org, toReference(backend.config, keyReference))
    if (!row) throw missingKey()
    const revoked = await revokeMemberKey(tx, row.id)
    await announceRevokedKeys(tx, backend.queue, revoked, admin.email)
    return row.id
  })

/**
 * Finds the key of a member.
 *
 * @param keyReference its id, or the key itself
 * @throws Refusal `missing`, also for the organization's own key.
 */
export async function requireMemberKey(
  query: Query,
  { config }: { config: Config },
  org: string,
  keyReference: string,
): Promise<MemberKeyRow & { user: string }> {
  const row = await findMemberKey(query, org, toReference(config, keyReference))
  if (row?.user) return { ...row, user: row.user }
  throw missingKey()
}

const toReference = ({ keyPepper }: Config, keyReference: string) =>
  looksLikeKey(keyReference) ? { hash: hashKey(keyPepper, keyReference) } : { id: keyReference }

const missingKey = (): Refusal => noSuchKey('GET /v1/orgs/:orgId/keys lists them')

/**
 * Returns the organization's own key, minted when it has none. The key belongs to no member: it reads memories
 * without tags and stores nothing.
 */
export async function ensureOrgKey(
  tx: Transaction,
  backend: SealBackend,
  { id: org, account, name }: Pick<OrgRow, 'id' | 'account' | 'name'>,
  actor: string,
): Promise<string> {
  const known = await findOrgKey(tx.query, org)
  if (known) return unsealKey(backend, known)
  const vault = await insertVault(tx, account)
  const row = { id: mintId(), org, user: null, account, vault, name }
  return insertSealedKey(tx, backend, row, actor)
}

/** Mints a `mk_org_` key whose raw form can be read again. @param actor who mints it, for the event */
async function insertSealedKey(
  tx: Transaction,
  { config, seal }: SealBackend,
  row: Pick<MemberKeyRow, 'id' | 'org' | 'user'> & {
    account: string
    vault: string
    name: string
    shares?: boolean
    expiresAt?: Date | null
    signedIn?: boolean
  },
  actor: string,
): Promise<string> {
  const key = mintKey('member')
  const sealed = seal.seal(key, sealContext(row.id))
  const minted = { ...row, key, kind: 'member', sealed, actor, action: 'key.minted' } as const
  await storeKey(tx, config.keyPepper, minted)
  return key
}

/**
 * Opens the raw key of a row.
 *
 * @throws Refusal `conflict` when the master key that sealed it is not configured any more; the key itself goes on
 *   working.
 */
function unsealKey({ seal }: Pick<SealBackend, 'seal'>, row: MemberKeyRow): string {
  try {
    return seal.open(row.sealed, sealContext(row.id))
  } catch {
    throw refusal('conflict', 'memberKeySealed')
  }
}

const sealContext = (id: string): string => `memory_keys:${id}`

/**
 * Mints a key for a user's private vault in place of the one before; the event says why, where a reason is given.
 *
 * @returns the raw key, which is not stored
 * @throws Refusal `missing`.
 */
export const mintUserKey = (
  backend: KeyBackend,
  { admin, org }: OrgAdmin,
  { user: id, reason }: { user: string; reason: string | undefined },
): Promise<{ key: string; rotated: boolean; createdAt: Date }> =>
  changePolicy(backend, { admin, org }, async tx => {
    const user = requireActive(await requireUser(tx.query, org, id))
    const { account, email: actor } = admin
    const revoked = await revokeUserKeys(tx, user.id)
    await announceRevokedKeys(tx, backend.queue, revoked, actor)
    const key = mintKey('vault')
    const masked = maskKey(key)
    const createdAt = await insertKey(tx, {
      hash: hashKey(backend.config.keyPepper, key),
      org,
      user: user.id,
      account,
      vault: user.vault,
      kind: 'user',
      name: user.teamMemberId,
      masked,
    })
    const rotated = revoked.length > 0
    await recordPolicyEvent(
      tx,
      { admin, org },
      {
        action: rotated ? 'key.rotated' : 'key.minted',
        subject: masked,
        before: null,
        after: { user_id: user.id, team_member_id: user.teamMemberId, ...(reason && { reason }) },
      },
    )
    return { key, rotated, createdAt }
  })
