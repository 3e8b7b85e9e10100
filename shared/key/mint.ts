import { hashOfKey, maskKey, mintKey } from '#shared/key/key.ts'
import { insertVault } from '#shared/postgres/accounts.ts'
import type { Transaction } from '#shared/postgres/connect.ts'
import { insertKey } from '#shared/postgres/keys.ts'

export type MintedKey = { key: string; name: string; vault: string; createdAt: Date }

/**
 * Creates a Memory Key with a vault of its own. It uses the account's stored provider keys by
 * belonging to the account. The raw key is in the result and nowhere else.
 */
export async function mintMemoryKey(
  tx: Transaction,
  pepper: string,
  { account, name, expiresAt = null }: { account: string; name: string; expiresAt?: Date | null },
): Promise<MintedKey> {
  const key = mintKey('vault')
  const vault = await insertVault(tx, account)
  const createdAt = await insertKey(tx, {
    hash: hashOfKey(pepper, key),
    vault,
    account,
    kind: 'vault',
    name,
    masked: maskKey(key),
    expiresAt,
  })
  return { key, name, vault, createdAt }
}
