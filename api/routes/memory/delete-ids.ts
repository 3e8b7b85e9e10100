import type { Router } from '@koa/router'
import { DeleteIdsBody } from '#api/contract/contract.ts'
import { operationOf } from '#api/idempotency.ts'
import { answerQueued, respondsAsync } from '#api/queued.ts'
import { bodyOf, callerOf } from '#api/request.ts'
import type { Backend } from '#shared/backend.ts'
import { acceptDeletion } from '#shared/erasure/delete-ids.ts'
import { requireStore } from '#shared/key/caller.ts'

/** Removes single memories for good, of any tier, in the core vault and in sessions. */
export function deleteIds(router: Router, backend: Backend): void {
  router.post('/v1/memory/delete-ids', async ctx => {
    const caller = await callerOf(ctx, backend)
    requireStore(caller)
    const { ids } = await bodyOf(ctx, DeleteIdsBody)

    const operation = operationOf(ctx)
    await acceptDeletion(backend, caller, { operation, ids, awaited: !respondsAsync(ctx) })
    await answerQueued(ctx, backend, caller, operation)
  })
}
