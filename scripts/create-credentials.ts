import type { FirstKeys } from '#scripts/credentials.ts'
import { hashKey, maskKey, mintKey } from '#shared/access/key.ts'
import { mintMemoryKey } from '#shared/access/mint.ts'
import { upsertAccount, type AccountBilling } from '#shared/access/accounts.postgres.ts'
import { issueAdminKey } from '#shared/access/admin-keys.ts'
import { serviceActor } from '#shared/events/account-events.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'

export type NewAccount = AccountBilling & {
  email: string
  /** Label of the Memory Key. */
  keyName: string
  /** Days until the Memory Key expires; null for never. */
  keyLifetimeDays: number | null
  /** Days until the admin credential expires; null for none at all. */
  adminLifetimeDays: number | null
}

type AccountCredentials = { email: string; memoryKey: string; adminKey: string | null }

const dayMs = 24 * 3600 * 1000

/**
 * Creates an account, an owner Memory Key with an empty vault, and an admin credential. For an email
 * that has an account, adds further keys to that account.
 *
 * @param presetKeys the keys to store; missing ones are generated
 */
export async function createCredentials(
  tx: Transaction,
  pepper: string,
  { email, keyName, keyLifetimeDays, adminLifetimeDays, ...billing }: NewAccount,
  presetKeys?: FirstKeys,
): Promise<AccountCredentials> {
  const account = await upsertAccount(tx, email.toLowerCase(), billing)
  const expiresAt = keyLifetimeDays === null ? null : new Date(Date.now() + keyLifetimeDays * dayMs)
  const keyAttributes = {
    account,
    actor: serviceActor,
    name: keyName,
    expiresAt,
    owner: true,
  }
  const { key: memoryKey } = await mintMemoryKey(tx, pepper, keyAttributes, presetKeys?.memory_key)
  const adminKey = adminLifetimeDays === null ? null : (presetKeys?.admin_key ?? mintKey('admin'))
  if (adminKey !== null) {
    const newKey = {
      hash: hashKey(pepper, adminKey),
      email: email.toLowerCase(),
      masked: maskKey(adminKey),
      issuedBy: 'bootstrap',
      expiresAt: new Date(Date.now() + adminLifetimeDays! * dayMs),
    }
    await issueAdminKey(tx, newKey, serviceActor)
  }
  return { email: email.toLowerCase(), memoryKey, adminKey }
}
