import { mintId } from '#shared/core/ids.ts'
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
  /** Hash of the key whose rate limits it shares; limits of its own, when missing. */
  limitedAs?: Buffer | null
}

export type MintedKey = { id: string; key: string; name: string; vault: string; createdAt: Date }

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
  { account, actor, name, expiresAt = null, owner = false, limitedAs = null }: NewMemoryKey,
  rawKey?: string,
): Promise<MintedKey> {
  const key = rawKey ?? mintKey('vault')
  const vault = await insertVault(tx, account, { owner })
  const id = mintId()
  const createdAt = await insertKey(tx, {
    id,
    hash: hashKey(pepper, key),
    vault,
    account,
    kind: 'vault',
    name,
    masked: maskKey(key),
    expiresAt,
    limitedAs,
  })
  await recordAccountEvent(tx, { account, actor, action: 'key.minted', subject: maskKey(key) })
  return { id, key, name, vault, createdAt }
}
