import type { Router } from '@koa/router'
import type { Context } from 'koa'
import { ListOperationsQuery } from '#api/contract/contract.ts'
import { claimIdempotencyKey } from '#api/edge/idempotency.ts'
import { presentOperation } from '#api/present/operation.ts'
import { authenticateRequest, parseQuery } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { isUuid } from '#shared/core/ids.ts'
import { requireStorePermission, isOwnerKey, type Caller } from '#shared/access/caller.ts'
import { cancelOperation } from '#shared/vault/delete/cancel.ts'
import {
  findVisibleOperation,
  listOperations,
  type OperationRow,
  type OperationScope,
} from '#shared/operations/operation-rows.postgres.ts'

/** The queued work of the vault, or to an owner key of the account: what there is, how far it is, and stopping what has not begun. */
export function operations(router: Router, backend: Backend): void {
  router.get('/v1/operations', async ctx => {
    const scope = operationScope(await authenticateRequest(ctx, backend))
    const { state, kind, limit, cursor } = parseQuery(ctx, ListOperationsQuery)
    const { account, vault } = scope
    const cursorScope = ['GET /v1/operations', account, vault, state ?? null, kind ?? null]
    const before =
      cursor === undefined ? undefined : (backend.cursors.read(cursor, cursorScope) as string)

    const rows = await listOperations(backend.postgres.query, scope, {
      state,
      kind,
      before,
      limit: limit + 1,
    })
    const page = rows.slice(0, limit)
    const more = rows.length > limit
    ctx.body = {
      items: page.map(presentOperation),
      has_more: more,
      next_cursor: more ? backend.cursors.write(page.at(-1)!.id, cursorScope) : null,
    }
  })

  router.get('/v1/operations/:id', async ctx => {
    const caller = await authenticateRequest(ctx, backend)
    ctx.body = presentOperation(await requireVisibleOperation(ctx, backend, caller))
  })

  router.delete('/v1/operations/:id', async ctx => {
    const caller = await authenticateRequest(ctx, backend)
    requireStorePermission(caller)
    await claimIdempotencyKey(ctx, null)
    const row = await requireVisibleOperation(ctx, backend, caller)
    if (row.state !== 'cancelled' && !(await cancelOperation(backend, caller.account, row.id))) {
      throw new Refusal(
        'conflict',
        'This operation has begun or ended and cannot be cancelled',
        `GET /v1/operations/${row.id} tells its state`,
      )
    }
    ctx.body = presentOperation(await requireVisibleOperation(ctx, backend, caller))
  })
}

/** Whoever does not speak for the account shares it with others, and sees what concerns their own vault. */
const operationScope = (caller: Caller): OperationScope => ({
  account: caller.account,
  vault: isOwnerKey(caller) ? null : caller.scope.vault,
})

async function requireVisibleOperation(
  ctx: Context & { params?: Record<string, string> },
  { postgres }: Pick<Backend, 'postgres'>,
  caller: Caller,
): Promise<OperationRow> {
  const id = ctx.params?.id ?? ''
  const row = isUuid(id)
    ? await findVisibleOperation(postgres.query, operationScope(caller), id)
    : undefined
  if (row) return row
  throw new Refusal(
    'missing',
    'No such operation',
    'GET /v1/operations lists those this key may see',
  )
}
