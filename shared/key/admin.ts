import { createHash, timingSafeEqual } from 'node:crypto'
import type { Backend } from '#shared/backend.ts'
import { hashOfKey } from '#shared/key/key.ts'
import { upsertAccount } from '#shared/postgres/accounts.ts'
import { findAdmin } from '#shared/postgres/admin-keys.ts'

/** Who administers: an email, and the account that belongs to it. */
export type Admin = { email: string; account: string }

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest()

/**
 * The admin behind a credential: one of those issued, or the break-glass secret of the environment.
 * That it begins with `mk_admin` proves nothing.
 *
 * @returns undefined for anything that is unknown, expired or revoked.
 */
export async function adminOfCredential(
  { postgres, config }: Pick<Backend, 'postgres' | 'config'>,
  credential: string,
): Promise<Admin | undefined> {
  const { adminSecret, adminEmail, keyPepper } = config
  const breaksGlass =
    adminSecret !== null &&
    adminEmail !== null &&
    timingSafeEqual(sha256(credential), sha256(adminSecret))
  const email = breaksGlass
    ? adminEmail
    : await findAdmin(postgres.query, hashOfKey(keyPepper, credential))
  if (email === undefined) return undefined
  const standing = { paymentMethod: null, balance: null }
  return { email, account: await upsertAccount(postgres, email, standing) }
}
