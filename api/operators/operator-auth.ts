import type { Context } from 'koa'
import { authenticateAdmin } from '#api/edge/admin-auth.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { basicAuthPassword, isOperator, operatorAuthChallenge } from '#shared/access/operator.ts'

/**
 * Lets the operator through: an admin credential of the operator's email, in any form an admin may send
 * it, or as the password of Basic authentication, which is how a browser can ask for it.
 *
 * @throws Refusal `unauthenticated`, for a valid credential of somebody else too.
 */
export async function requireOperator(ctx: Context, backend: Backend): Promise<void> {
  const password = basicAuthPassword(ctx.get('authorization'))
  // From here on it is one more way to send the same credential.
  if (password !== undefined) ctx.req.headers.authorization = `Bearer ${password}`
  const admin = await authenticateAdmin(ctx, backend)
  if (admin && isOperator(backend.config, admin)) return
  ctx.set('WWW-Authenticate', operatorAuthChallenge)
  throw new Refusal(
    'unauthenticated',
    'This page is for the operator',
    'Send an admin credential of the operator as a bearer token, or as the password of Basic authentication',
  )
}
