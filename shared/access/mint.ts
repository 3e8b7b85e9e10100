import { keyRotatedRefusal } from '#shared/access/caller.ts'
import { hashKey, maskKey, mintKey } from '#shared/access/key.ts'
import { insertVault } from '#shared/access/accounts.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import { expireRotatedKey, insertKey } from '#shared/access/memory-keys.postgres.ts'

type NewMemoryKey = { account: string; name: string; expiresAt?: Date | null; owner?: boolean }

export type MintedKey = { key: string; name: string; vault: string; createdAt: Date }

/**
 * Creates a Memory Key with a vault of its own. It uses the account's stored provider keys by
 * belonging to the account. The raw key is in the result and nowhere else.
 *
 * `owner` makes it, and what it is rotated into, speak for the account; without it the key is one of
 * the account's users'.
 *
 * @param rawKey a raw key that has been made already; a new one when missing
 */
export async function mintMemoryKey(
  tx: Transaction,
  pepper: string,
  { account, name, expiresAt = null, owner = false }: NewMemoryKey,
  rawKey?: string,
): Promise<MintedKey> {
  const key = rawKey ?? mintKey('vault')
  const vault = await insertVault(tx, account, { owner })
  const createdAt = await insertKey(tx, {
    hash: hashKey(pepper, key),
    vault,
    account,
    kind: 'vault',
    name,
    masked: maskKey(key),
    expiresAt,
  })
  return { key, name, vault, createdAt }
}

export type RotatedKey = { key: string; name: string; createdAt: Date; previousExpiresAt: Date }

/**
 * Creates a new key for the vault of an old one, which stops working now or after `graceSeconds`.
 * What is remembered stays where it is.
 *
 * @throws Refusal `forbidden` when the old key has ended meanwhile, or was rotated already.
 */
export async function rotateMemoryKey(
  tx: Transaction,
  pepper: string,
  rotation: {
    keyHash: Buffer
    name: string | undefined
    expiresAt: Date | null
    graceSeconds: number
  },
): Promise<RotatedKey> {
  const { keyHash, graceSeconds, expiresAt } = rotation
  const old = await expireRotatedKey(tx, keyHash, graceSeconds)
  if (!old) throw keyRotatedRefusal()
  const key = mintKey('vault')
  const name = rotation.name ?? old.name
  const createdAt = await insertKey(tx, {
    hash: hashKey(pepper, key),
    vault: old.vault,
    account: old.account,
    kind: 'vault',
    name,
    masked: maskKey(key),
    expiresAt,
  })
  return { key, name, createdAt, previousExpiresAt: old.expiresAt }
}
