import type { Config } from '#shared/core/config.ts'
import { findAdminByCredential, type Admin } from '#shared/access/admin.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'

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
