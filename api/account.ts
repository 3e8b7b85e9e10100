import type { Context } from 'koa'
import { adminOf } from '#api/admin.ts'
import { callerOf } from '#api/request.ts'
import type { Backend } from '#shared/backend.ts'
import { requireOwner } from '#shared/key/caller.ts'

/**
 * The account of the admin who asks, or of a Memory Key that speaks for its account.
 *
 * @throws Refusal as `callerOf` and `requireOwner`.
 */
export async function accountOf(
  ctx: Context,
  backend: Pick<Backend, 'postgres' | 'config' | 'findKey'>,
): Promise<string> {
  const admin = await adminOf(ctx, backend)
  if (admin) return admin.account
  const caller = await callerOf(ctx, backend)
  requireOwner(caller)
  return caller.account
}
