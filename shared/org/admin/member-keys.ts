import { Refusal } from '#shared/core/errors.ts'
import { noSuchKey } from '#shared/core/refusals.ts'
import type { Admin } from '#shared/access/admin.ts'
import { hashKey, looksLikeKey, maskMemberKey, maskKey, mintKey } from '#shared/access/key.ts'
import {
  recordPolicyEvent,
  changePolicy,
  requireOrganization,
  type OrgAdmin,
} from '#shared/org/base/policy-change.ts'
import { ensureUser, requireUser } from '#shared/org/admin/user.ts'
import type { Query, Postgres, Transaction } from '#shared/storage/postgres/connect.ts'
import {
  findMemberKey,
  listMemberKeys,
  revokeMemberKey,
  type KeyHolder,
  type MemberKeyRow,
  findOrgKey,
  revokeUserKeys,
} from '#shared/access/member-keys.postgres.ts'
import type { Config } from '#shared/core/config.ts'
import type { Seal } from '#shared/core/seal.ts'
import { insertKey } from '#shared/access/memory-keys.postgres.ts'
import { storeKey } from '#shared/access/mint.ts'
import { announceRevokedKeys } from '#shared/access/revoked-key.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import { mintId } from '#shared/core/ids.ts'
import { insertVault } from '#shared/access/accounts.postgres.ts'
import type { OrgRow } from '#shared/org/base/orgs.postgres.ts'

/** A member key with its raw form. */
export type RevealedMemberKey = MemberKeyRow & { key: string }

type MemberKeyRequest = {
  org: string
  teamMemberId: string
  /** False: what the member says with it is not shared. */
  shares: boolean
  operation: string
}

/**
 * Mints a key of a member, and creates the member where the organization has none of that name. Repeated under the
 * same operation it returns the same key.
 *
 * @param operation becomes the key's id
 * @throws Refusal `missing`; `conflict` when the key cannot be shown any more.
 */
export const mintMemberKey = (
  backend: { postgres: Postgres; config: Config; seal: Seal },
  admin: Admin,
  { org, teamMemberId, shares, operation }: MemberKeyRequest,
): Promise<RevealedMemberKey> =>
  changePolicy(backend, { admin, org }, async tx => {
    const existing = await findMemberKey(tx.query, org, { id: operation })
    if (existing) return { ...existing, key: unsealKey(backend, existing) }
    const { account } = admin
    const user = await ensureUser(tx, { admin, org }, teamMemberId)
    const { id: userId, vault, teamMemberId: name } = user
    const newKey = { id: operation, org, user: userId, account, vault, name, shares }
    const { key } = await insertSealedKey(tx, backend, newKey, admin.email)
    const row = await findMemberKey(tx.query, org, { id: operation })
    return { ...row!, key }
  })

/**
 * Lists keys of members, revoked ones too, without their raw form.
 *
 * @param q a whole key, or a part in any case of the masked form, the id, or a name or email of the member
 * @throws Refusal `missing`.
 */
export async function searchMemberKeys(
  backend: { postgres: Postgres; config: Config },
  admin: Admin,
  org: string,
  q = '',
): Promise<MemberKeyRow[]> {
  const { query } = backend.postgres
  await requireOrganization(query, admin, org)
  const exactKey = looksLikeKey(q)
    ? await findMemberKey(query, org, parseKeyReference(backend, q))
    : undefined
  if (exactKey?.user) return [exactKey]
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
export async function readMemberKey(
  backend: { postgres: Postgres; config: Config; seal: Seal },
  admin: Admin,
  org: string,
  keyReference: string,
): Promise<RevealedMemberKey> {
  return backend.postgres.transaction(async tx => {
    await requireOrganization(tx.query, admin, org)
    const row = await requireMemberKey(tx.query, backend, org, keyReference)
    const key = unsealKey(backend, row)
    await recordPolicyEvent(
      tx,
      { admin, org },
      {
        action: 'key.revealed',
        subject: row.masked,
        before: null,
        after: { key_id: row.id, team_member_id: row.teamMemberId },
      },
    )
    return { ...row, key }
  })
}

/**
 * Revokes a member key, or the organization's own: every process refuses the next request with it.
 *
 * @param keyReference its id, or the key itself
 * @returns its id
 * @throws Refusal `missing`.
 */
export const revokeOrgMemberKey = (
  backend: { postgres: Postgres; config: Config; queue: Queue },
  admin: Admin,
  org: string,
  keyReference: string,
): Promise<string> =>
  changePolicy(backend, { admin, org }, async tx => {
    const row = await findMemberKey(tx.query, org, parseKeyReference(backend, keyReference))
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
  backend: { config: Config },
  org: string,
  keyReference: string,
): Promise<MemberKeyRow & { user: string }> {
  const row = await findMemberKey(query, org, parseKeyReference(backend, keyReference))
  if (row?.user) return { ...row, user: row.user }
  throw missingKey()
}

const parseKeyReference = ({ config }: { config: Config }, keyReference: string) =>
  looksLikeKey(keyReference)
    ? { hash: hashKey(config.keyPepper, keyReference) }
    : { id: keyReference }

const missingKey = (): Refusal => noSuchKey('GET /v1/orgs/:orgId/keys lists them')

export type SealBackend = { config: Config; seal: Seal }

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
  const { key } = await insertSealedKey(tx, backend, row, actor)
  return key
}

/**
 * Mints a `mk_org_` key whose raw form can be read again.
 *
 * @param actor who mints it, for the event
 */
async function insertSealedKey(
  tx: Transaction,
  { config, seal }: SealBackend,
  row: {
    id: string
    org: string
    user: string | null
    account: string
    vault: string
    name: string
    shares?: boolean
  },
  actor: string,
): Promise<{ key: string; createdAt: Date }> {
  const key = mintKey('member')
  const sealed = seal.seal(key, sealContext(row.id))
  const minted = { ...row, key, kind: 'member', sealed, actor, action: 'key.minted' } as const
  return { key, createdAt: await storeKey(tx, config.keyPepper, minted) }
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
    throw new Refusal(
      'conflict',
      'This key cannot be shown any more, though it still works',
      'The operator has dropped the master key it was sealed with. Create another key for the member and revoke this one',
    )
  }
}

const sealContext = (id: string): string => `memory_keys:${id}`

/**
 * Mints a key for a user's private vault in place of the one before.
 *
 * @returns the raw key, which is not stored
 * @throws Refusal `missing`.
 */
export const mintUserKey = (
  backend: { postgres: Postgres; config: Config; queue: Queue },
  { admin, org }: OrgAdmin,
  id: string,
): Promise<{ key: string; rotated: boolean; createdAt: Date }> =>
  changePolicy(backend, { admin, org }, async tx => {
    const user = await requireUser(tx.query, org, id)
    const { account, email: actor } = admin
    const revoked = await revokeUserKeys(tx, user.id)
    await announceRevokedKeys(tx, backend.queue, revoked, actor)
    const key = mintKey('vault')
    const createdAt = await insertKey(tx, {
      hash: hashKey(backend.config.keyPepper, key),
      org,
      user: user.id,
      account,
      vault: user.vault,
      kind: 'user',
      name: user.teamMemberId,
      masked: maskKey(key),
    })
    const rotated = revoked.length > 0
    await recordPolicyEvent(
      tx,
      { admin, org },
      {
        action: rotated ? 'key.rotated' : 'key.minted',
        subject: maskKey(key),
        before: null,
        after: { user_id: user.id, team_member_id: user.teamMemberId },
      },
    )
    return { key, rotated, createdAt }
  })
