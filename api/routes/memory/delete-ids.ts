import type { Router } from '@koa/router'
import type { Context } from 'koa'
import { DeleteIdsBody } from '#api/contract/contract.ts'
import { operationOf } from '#api/edge/idempotency.ts'
import { answerQueued, queuedWaitMs, respondsAsync } from '#api/edge/queued.ts'
import { bodyOf, callerOf } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { removeMemories } from '#shared/vault/delete/delete-ids.ts'
import { Refusal } from '#shared/core/errors.ts'
import { requireStore, type Caller } from '#shared/access/caller.ts'
import type { OperationState } from '#shared/operations/operations.postgres.ts'

/** Removes single memories for good, of any tier, in the core vault and in sessions. */
export function deleteIds(router: Router, backend: Backend): void {
  router.post('/v1/memory/delete-ids', async ctx => {
    const caller = await callerOf(ctx, backend)
    requireStore(caller)
    const { ids } = await bodyOf(ctx, DeleteIdsBody)

    const operation = operationOf(ctx)
    const isDone = await removeMemories(backend, caller, { operation, ids })
    const state = isDone ? 'done' : await stateSoon(ctx, backend, caller, operation)
    if (state !== 'done') throw stillSeen(operation)
    await answerQueued(ctx, backend, caller, operation)
  })
}

/** How the operation stands when the job had its time too; at once for who does not want to wait. */
const stateSoon = (
  ctx: Context,
  { operations }: Pick<Backend, 'operations'>,
  { account }: Caller,
  operation: string,
): Promise<OperationState> =>
  operations.settled(account, operation, respondsAsync(ctx) ? 0 : queuedWaitMs)

/** Not even a 202: whoever gets one relies on it that the memories cannot be seen any more. */
const stillSeen = (operation: string): Refusal =>
  new Refusal(
    'unavailable',
    'The memories could not be removed yet',
    `It will be done as soon as it can be; GET /v1/operations/${operation} tells when`,
  )
