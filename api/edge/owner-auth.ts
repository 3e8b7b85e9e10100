import type { Context } from 'koa'
import { authenticateAdmin } from '#api/edge/admin-auth.ts'
import { authenticateRequest } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { requireOwner } from '#shared/access/caller.ts'
import { bindActor } from '#shared/audit/actor.postgres.ts'

type OwnerBackend = Pick<Backend, 'postgres' | 'config' | 'findKey' | 'expiry'>

/** Who speaks for an account. */
export type Owner = {
  account: string
  /** As the account's events name them: an admin's email, or a Memory Key, masked. */
  actor: string
}

/**
 * The admin who asks, or an owner key: one that was made with the account. Keys minted over HTTP are for
 * one user each, so none of them gets here.
 *
 * @throws Refusal as `callerOf` and `requireOwner`.
 */
export async function authenticateOwner(ctx: Context, backend: OwnerBackend): Promise<Owner> {
  const admin = await authenticateAdmin(ctx, backend)
  if (admin) return { account: admin.account, actor: admin.email }
  const caller = await authenticateRequest(ctx, backend)
  requireOwner(caller)
  return { account: caller.account, actor: caller.maskedKey }
}

/** The account they speak for. @throws Refusal as `ownerOf`. */
export const authenticateOwnerAccount = async (
  ctx: Context,
  backend: OwnerBackend,
): Promise<string> => (await authenticateOwner(ctx, backend)).account

/** The backend for what they change: the account's events name them. */
export const withActor = <Part extends Pick<Backend, 'postgres'>>(
  backend: Part,
  { actor }: Pick<Owner, 'actor'>,
): Part => ({ ...backend, postgres: bindActor(backend.postgres, actor) })
