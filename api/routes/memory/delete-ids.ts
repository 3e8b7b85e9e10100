import type { Router } from '@koa/router'
import type { Context } from 'koa'
import { DeleteIdsBody } from '#api/contract/contract.ts'
import { operationId } from '#api/edge/idempotency.ts'
import {
  sendOperationOutcome,
  operationWaitMs,
  prefersAsync,
} from '#api/edge/operation-response.ts'
import { parseBody, authenticateRequest } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { acceptAndDelete } from '#shared/vault/delete/delete-memories.ts'
import { Refusal } from '#shared/core/errors.ts'
import { requireStorePermission, type Caller } from '#shared/access/caller.ts'
import type { OperationState } from '#shared/operations/operations.postgres.ts'

/** Removes single memories for good, of any tier, in the core vault and in sessions. */
export function deleteIds(router: Router, backend: Backend): void {
  router.post('/v1/memory/delete-ids', async ctx => {
    const caller = await authenticateRequest(ctx, backend)
    requireStorePermission(caller)
    const { ids } = await parseBody(ctx, DeleteIdsBody)

    const operation = operationId(ctx)
    const isDone = await acceptAndDelete(backend, caller, { operation, ids })
    const state = isDone ? 'done' : await awaitOperationState(ctx, backend, caller, operation)
    if (state !== 'done') throw notRemovedYet(operation)
    await sendOperationOutcome(ctx, backend, caller, operation)
  })
}

/** How the operation stands when the job had its time too; at once for who does not want to wait. */
const awaitOperationState = (
  ctx: Context,
  { operationWaiter }: Pick<Backend, 'operationWaiter'>,
  { account }: Caller,
  operation: string,
): Promise<OperationState> =>
  operationWaiter.waitUntilSettled(account, operation, prefersAsync(ctx) ? 0 : operationWaitMs)

/** Not even a 202: whoever gets one relies on it that the memories cannot be seen any more. */
const notRemovedYet = (operation: string): Refusal =>
  new Refusal(
    'unavailable',
    'The memories could not be removed yet',
    `It will be done as soon as it can be; GET /v1/operations/${operation} tells when`,
  )
