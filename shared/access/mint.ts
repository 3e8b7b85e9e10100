import { insertVault } from '#shared/access/accounts.postgres.ts'
import { hashKey, maskKey, mintKey } from '#shared/access/key.ts'
import { insertKey, type NewKey } from '#shared/access/memory-keys.postgres.ts'
import { mintId } from '#shared/core/ids.ts'
import { recordAccountEvent, type AccountAction } from '#shared/events/account-events.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'

/** Stores a key by its hash and mask, and records the event. @returns when it was created. */
export async function storeKey(
  tx: Transaction,
  pepper: string,
  rawKey: Omit<NewKey, 'hash' | 'masked'> & {
    key: string
    /** Who makes it, as the account's events name them. */
    actor: string
    action: AccountAction
  },
): Promise<Date> {
  const { key, actor, action, ...row } = rawKey
  const masked = maskKey(key)
  const createdAt = await insertKey(tx, { ...row, hash: hashKey(pepper, key), masked })
  await recordAccountEvent(tx, { account: row.account, actor, action, subject: masked })
  return createdAt
}

export type MintedKey = { id: string; key: string; name: string; vault: string; createdAt: Date }

/**
 * Creates a Memory Key with its own vault. The key uses the provider keys of its account. The raw
 * key is only in the result.
 *
 * With `owner` the key, and every key that replaces it, acts for the account; without it the key
 * belongs to one of the account's users.
 *
 * @param key an existing raw key; generated when missing
 */
export async function mintMemoryKey(
  tx: Transaction,
  pepper: string,
  newMemoryKey: {
    account: string
    /** Who mints it, as the account's events name them. */
    actor: string
    name: string
    expiresAt?: Date | null
    owner?: boolean
    /** Hash of the key whose rate limits it shares; limits of its own, when missing. */
    limitedAs?: Buffer | null
  },
  key = mintKey('vault'),
): Promise<MintedKey> {
  const { owner = false, ...row } = newMemoryKey
  const { account, name } = row
  const vault = await insertVault(tx, account, { owner })
  const id = mintId()
  const minted = { ...row, id, key, vault, kind: 'vault', action: 'key.minted' } as const
  const createdAt = await storeKey(tx, pepper, minted)
  return { id, key, name, vault, createdAt }
}
