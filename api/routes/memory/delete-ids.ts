import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import type { Context } from 'koa'
import {
  sendOperationOutcome,
  operationWaitMs,
  prefersAsync,
} from '#api/edge/operation-response.ts'
import type { Backend } from '#shared/backend.ts'
import { acceptAndDelete } from '#shared/vault/delete/delete-memories.ts'
import { Refusal } from '#shared/core/errors.ts'
import { requireStorePermission, type Caller } from '#shared/access/caller.ts'
import type { OperationState } from '#shared/operations/operations.postgres.ts'

/** Removes single memories for good, of any tier, in the core vault and in sessions. */
export function deleteIds(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/memory/delete-ids',
    auth: memoryKey(requireStorePermission),
    async handle({ caller, body, claim }, ctx) {
      const { ids } = body

      const { operation } = claim
      const isDone = await acceptAndDelete(backend, caller, { operation, ids })
      const state = isDone ? 'done' : await awaitOperationState(ctx, backend, caller, operation)
      if (state !== 'done') throw notRemovedYet(operation)
      await sendOperationOutcome(ctx, backend, caller, operation)
    },
  })
}

/** The state of the operation once its job has run, or after 25 s; at once with `Prefer: respond-async`. */
const awaitOperationState = (
  ctx: Context,
  { operationWaiter }: Pick<Backend, 'operationWaiter'>,
  { account }: Caller,
  operation: string,
): Promise<OperationState> =>
  operationWaiter.waitUntilSettled(account, operation, prefersAsync(ctx) ? 0 : operationWaitMs)

/** No 202: a client that gets one relies on it that the memories cannot be seen any more. */
const notRemovedYet = (operation: string): Refusal =>
  new Refusal(
    'unavailable',
    'The memories could not be removed yet',
    `It will be done as soon as it can be; GET /v1/operations/${operation} tells when`,
  )
