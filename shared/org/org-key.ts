import { Refusal } from '#shared/core/errors.ts'
import { mintId } from '#shared/core/ids.ts'
import { hashOfKey, maskKey, mintKey } from '#shared/access/key.ts'
import { insertVault } from '#shared/access/accounts.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import {
  findOrgKey,
  insertMemberKey,
  type MemberKeyRow,
} from '#shared/access/member-keys.postgres.ts'
import type { OrgRow } from '#shared/org/orgs.postgres.ts'
import type { Config } from '#shared/core/config.ts'
import type { Seal } from '#shared/core/seal.ts'

export type Sealing = { config: Config; seal: Seal }

/**
 * The organization's own key, made when it has none. It is nobody's: it reads what has no tags, and
 * stores nothing.
 */
export async function orgKeyOf(
  tx: Transaction,
  backend: Sealing,
  { id: org, account, name }: Pick<OrgRow, 'id' | 'account' | 'name'>,
): Promise<string> {
  const known = await findOrgKey(tx.query, org)
  if (known) return rawKeyOf(backend, known)
  const vault = await insertVault(tx, account)
  const { key } = await insertSealedKey(tx, backend, {
    id: mintId(),
    org,
    user: null,
    account,
    vault,
    name,
  })
  return key
}

/** Writes a new `mk_org_` key whose raw form can be read again. */
export async function insertSealedKey(
  tx: Transaction,
  { config, seal }: Sealing,
  row: {
    id: string
    org: string
    user: string | null
    account: string
    vault: string
    name: string
  },
): Promise<{ key: string; createdAt: Date }> {
  const key = mintKey('member')
  const createdAt = await insertMemberKey(tx, {
    ...row,
    kind: 'member',
    hash: hashOfKey(config.keyPepper, key),
    masked: maskKey(key),
    sealed: seal.seal(key, placeOf(row.id)),
  })
  return { key, createdAt }
}

/**
 * The raw key of a row.
 *
 * @throws Refusal `conflict` when it does not open: the master key that sealed it is not configured any
 *   more. The key itself goes on working.
 */
export function rawKeyOf({ seal }: Pick<Sealing, 'seal'>, row: MemberKeyRow): string {
  try {
    return seal.open(row.sealed, placeOf(row.id))
  } catch {
    throw new Refusal(
      'conflict',
      'This key cannot be shown any more, though it still works',
      'The operator has dropped the master key it was sealed with. Create another key for the member and revoke this one',
    )
  }
}

const placeOf = (id: string): string => `memory_keys:${id}`
