import { Refusal } from '#shared/core/errors.ts'
import { mintId } from '#shared/core/ids.ts'
import { hashKey, maskKey, mintKey } from '#shared/access/key.ts'
import { insertVault } from '#shared/access/accounts.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import {
  findOrgKey,
  insertMemberKey,
  type MemberKeyRow,
} from '#shared/access/member-keys.postgres.ts'
import { recordAccountEvent } from '#shared/events/account-events.postgres.ts'
import type { OrgRow } from '#shared/org/base/orgs.postgres.ts'
import type { Config } from '#shared/core/config.ts'
import type { Seal } from '#shared/core/seal.ts'

export type SealBackend = { config: Config; seal: Seal }

/**
 * The organization's own key, created when it has none. It belongs to no member: it reads memories
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
 * Writes a new `mk_org_` key whose raw form can be read again.
 *
 * @param actor as the account's events name who mints it
 */
export async function insertSealedKey(
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
  const createdAt = await insertMemberKey(tx, {
    ...row,
    kind: 'member',
    hash: hashKey(config.keyPepper, key),
    masked: maskKey(key),
    sealed: seal.seal(key, sealContext(row.id)),
  })
  const { account } = row
  await recordAccountEvent(tx, { account, actor, action: 'key.minted', subject: maskKey(key) })
  return { key, createdAt }
}

/**
 * The raw key of a row.
 *
 * @throws Refusal `conflict` when it does not open: the master key that sealed it is not configured any
 *   more. The key itself goes on working.
 */
export function unsealKey({ seal }: Pick<SealBackend, 'seal'>, row: MemberKeyRow): string {
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
