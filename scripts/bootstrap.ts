import type { FirstKeys } from '#scripts/credentials.ts'
import { hashOfKey, maskKey, mintKey } from '#shared/access/key.ts'
import { mintMemoryKey } from '#shared/access/mint.ts'
import { upsertAccount, type Standing } from '#shared/access/accounts.postgres.ts'
import { insertAdminKey } from '#shared/access/admin-keys.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'

export type NewAccount = Standing & {
  email: string
  /** Label of the Memory Key. */
  keyName: string
  /** Days until the Memory Key expires; null for never. */
  keyDays: number | null
  /** Days until the admin credential expires; null for none at all. */
  adminDays: number | null
}

type Credentials = { email: string; memoryKey: string; adminKey: string | null }

const dayMs = 24 * 3600 * 1000

/**
 * Makes what a newcomer needs: the account of an email, a Memory Key with an empty vault that speaks for
 * it, and an admin credential. For an email that has an account already, further keys of that account.
 *
 * @param minted the keys to give to it; new ones when missing
 */
export async function createCredentials(
  tx: Transaction,
  pepper: string,
  { email, keyName, keyDays, adminDays, ...standing }: NewAccount,
  minted?: FirstKeys,
): Promise<Credentials> {
  const account = await upsertAccount(tx, email.toLowerCase(), standing)
  const expiresAt = keyDays === null ? null : new Date(Date.now() + keyDays * dayMs)
  const labels = { account, name: keyName, expiresAt, owner: true }
  const { key: memoryKey } = await mintMemoryKey(tx, pepper, labels, minted?.memory_key)
  const adminKey = adminDays === null ? null : (minted?.admin_key ?? mintKey('admin'))
  if (adminKey !== null) {
    await insertAdminKey(tx.query, {
      hash: hashOfKey(pepper, adminKey),
      email: email.toLowerCase(),
      masked: maskKey(adminKey),
      issuedBy: 'bootstrap',
      expiresAt: new Date(Date.now() + adminDays! * dayMs),
    })
  }
  return { email: email.toLowerCase(), memoryKey, adminKey }
}
