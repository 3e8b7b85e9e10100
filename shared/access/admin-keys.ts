import {
  insertAdminKey,
  updateAdminKeyRevoked,
  type AdminKey,
  type NewAdminKey,
} from '#shared/access/admin-keys.postgres.ts'
import { recordAccountEvent } from '#shared/events/account-events.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'

/**
 * Issues an admin credential. A second call with the same id replaces the first credential.
 *
 * @param actor who issues it, as the account's events name them
 */
export async function issueAdminKey(
  tx: Transaction,
  key: NewAdminKey,
  actor: string,
): Promise<AdminKey> {
  const { adminKey, account, isNew } = await insertAdminKey(tx.query, key)
  if (isNew && account !== null) {
    const { masked: subject } = adminKey
    await recordAccountEvent(tx, { account, actor, action: 'admin_key.issued', subject })
  }
  return adminKey
}

/**
 * Revokes an admin credential.
 *
 * @param email null: of any email
 * @returns false when the email has no such credential.
 */
export async function revokeAdminKey(
  tx: Transaction,
  { email, id }: { email: string | null; id: string },
  actor: string,
): Promise<boolean> {
  const key = await updateAdminKeyRevoked(tx.query, email, id)
  if (!key) return false
  const { account, masked: subject, wasRevoked } = key
  if (!wasRevoked && account !== null) {
    await recordAccountEvent(tx, { account, actor, action: 'admin_key.revoked', subject })
  }
  return true
}
