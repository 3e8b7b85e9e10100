import { createHash, timingSafeEqual } from 'node:crypto'
import { hashKey, looksLikeKey } from '#shared/access/key.ts'
import { newAccountBilling, upsertAccount } from '#shared/access/accounts.postgres.ts'
import { findAdmin, findAdminByEmail, noteAdminUse } from '#shared/access/admin-keys.postgres.ts'
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

/** Whether a bearer token can be one of this service: clients of other products send tokens of those too. */
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
  if (!match.isNoted) await noteAdminUse(postgres.query, keyHash)
  const account = match.account ?? (await upsertAccount(postgres, match.email, newAccountBilling))
  return { email: match.email, account, keyHash }
}

/**
 * The email whose admin credentials open what belongs to the whole service: `ADMIN_EMAIL`, if set.
 */
export const operatorEmail = ({ adminEmail }: Pick<Config, 'adminEmail'>): string =>
  adminEmail ?? 'owner@localhost'

/** Other admins own organizations; queues and metrics concern every tenant. */
export const isOperator = (config: Pick<Config, 'adminEmail'>, { email }: Admin): boolean =>
  email === operatorEmail(config)

/** Whether the credential is a valid one of the operator. */
export async function isOperatorCredential(
  backend: { postgres: Postgres; config: Config },
  credential: string,
): Promise<boolean> {
  const admin = await findAdminByCredential(backend, credential)
  return admin !== undefined && isOperator(backend.config, admin)
}

/**
 * The password of `Authorization: Basic …`, with any user name: browsers send credentials this way.
 */
export function basicAuthPassword(authorization: string): string | undefined {
  const encoded = /^basic +(\S+)\s*$/i.exec(authorization)?.[1]
  if (encoded === undefined) return undefined
  const text = Buffer.from(encoded, 'base64').toString('utf8')
  return text.slice(text.indexOf(':') + 1)
}

/** The header that makes a browser ask for it. */
export const operatorAuthChallenge = 'Basic realm="Memory Vault operator", charset="UTF-8"'
