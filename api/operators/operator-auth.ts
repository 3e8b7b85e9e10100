import type { Context } from 'koa'
import { authenticateAdmin } from '#api/edge/auth.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { refusal } from '#shared/core/refusal.ts'
import { basicAuthPassword, isOperator, operatorAuthChallenge } from '#shared/access/admin.ts'

/**
 * Admits the operator: an admin credential of the operator's email, in any form an admin may send it, or
 * as the password of Basic authentication, which a browser can prompt for.
 *
 * @throws Refusal `unauthenticated`, also for a valid credential of another admin.
 */
export async function requireOperator(
  ctx: Context,
  backend: Pick<ApiBackend, 'postgres' | 'config' | 'rateLimiter'>,
): Promise<void> {
  const password = basicAuthPassword(ctx.get('authorization'))
  const authorization = password === undefined ? undefined : `Bearer ${password}`
  const admin = await authenticateAdmin(ctx, backend, authorization)
  if (admin && isOperator(backend.config, admin)) return
  ctx.set('WWW-Authenticate', operatorAuthChallenge)
  throw refusal('unauthenticated', 'operatorPage')
}
