import { hashKey, maskKey, mintKey } from '#shared/access/key.ts'
import { insertVault } from '#shared/access/accounts.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import { insertKey } from '#shared/access/memory-keys.postgres.ts'
import { recordAccountEvent } from '#shared/events/account-events.postgres.ts'

type NewMemoryKey = {
  account: string
  /** Who mints it, as the account's events name them. */
  actor: string
  name: string
  expiresAt?: Date | null
  owner?: boolean
}

export type MintedKey = { key: string; name: string; vault: string; createdAt: Date }

/**
 * Creates a Memory Key with its own vault. The key uses the provider keys of its account. The raw
 * key is only in the result.
 *
 * With `owner` the key, and every key that replaces it, acts for the account; without it the key
 * belongs to one of the account's users.
 *
 * @param rawKey an existing raw key; generated when missing
 */
export async function mintMemoryKey(
  tx: Transaction,
  pepper: string,
  { account, actor, name, expiresAt = null, owner = false }: NewMemoryKey,
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
  await recordAccountEvent(tx, { account, actor, action: 'key.minted', subject: maskKey(key) })
  return { key, name, vault, createdAt }
}
