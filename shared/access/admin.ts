import { createHash, timingSafeEqual } from 'node:crypto'
import { hashKey, looksLikeKey } from '#shared/access/key.ts'
import { upsertAccount } from '#shared/access/accounts.postgres.ts'
import { findAdmin, findAdminByEmail } from '#shared/access/admin-keys.postgres.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import type { Config } from '#shared/core/config.ts'

/** An authenticated admin: email, account, and the hash of the credential. */
export type Admin = { email: string; account: string; keyHash: Buffer }

/** The hash of the break-glass secret, if it acts for this email; null otherwise. */
export const breakGlassHash = (
  { keyPepper, adminSecret, adminEmail }: Config,
  email: string,
): Buffer | null =>
  adminSecret !== null && adminEmail === email ? hashKey(keyPepper, adminSecret) : null

/** Whether a credential is the break-glass secret of the environment. */
const isAdminSecret = ({ adminSecret }: Pick<Config, 'adminSecret'>, credential: string): boolean =>
  adminSecret !== null && timingSafeEqual(sha256(credential), sha256(adminSecret))

/** Whether a bearer token can be one of this service: other products send tokens of theirs beside a key of ours. */
export const isOurCredential = (config: Pick<Config, 'adminSecret'>, credential: string): boolean =>
  looksLikeKey(credential) || isAdminSecret(config, credential)

const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest()

/**
 * Authenticates an admin by an issued credential or by the break-glass secret of the environment.
 * The prefix `mk_admin` alone proves nothing. An email without an account gets one.
 *
 * @returns undefined for a credential that is unknown, expired or revoked.
 */
export async function findAdminByCredential(
  { postgres, config }: { postgres: Postgres; config: Config },
  credential: string,
): Promise<Admin | undefined> {
  const { adminEmail, keyPepper } = config
  const keyHash = hashKey(keyPepper, credential)
  const match =
    adminEmail !== null && isAdminSecret(config, credential)
      ? await findAdminByEmail(postgres.query, adminEmail)
      : await findAdmin(postgres.query, keyHash)
  if (!match) return undefined
  const billing = { paymentMethod: null, balance: null }
  const account = match.account ?? (await upsertAccount(postgres, match.email, billing))
  return { email: match.email, account, keyHash }
}
