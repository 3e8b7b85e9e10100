import type { Backend } from '#shared/backend.ts'
import { mintId } from '#shared/ids.ts'
import { hashOfKey, maskKey, mintKey } from '#shared/key/key.ts'
import { insertVault } from '#shared/postgres/accounts.ts'
import type { Transaction } from '#shared/postgres/connect.ts'
import { findOrgKey, insertMemberKey, type MemberKeyRow } from '#shared/postgres/members.ts'
import type { OrgRow } from '#shared/postgres/orgs.ts'

export type Sealing = Pick<Backend, 'config' | 'seal'>

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

/** The raw key of a row. @throws Error when it was sealed by a master key that is not configured. */
export const rawKeyOf = ({ seal }: Pick<Sealing, 'seal'>, row: MemberKeyRow): string =>
  seal.open(row.sealed, placeOf(row.id))

const placeOf = (id: string): string => `memory_keys:${id}`
