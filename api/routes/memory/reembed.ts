import type { Router } from '@koa/router'
import { ReembedBody } from '#api/contract/contract.ts'
import { isFirstAttempt, operationId } from '#api/edge/idempotency.ts'
import { sendOperationOutcome, prefersAsync } from '#api/edge/operation-response.ts'
import { parseBody, authenticateRequest } from '#api/edge/request.ts'
import { requireQueueCapacity } from '#shared/billing/admission-checks.ts'
import type { Backend } from '#shared/backend.ts'
import { requireStorePermission } from '#shared/access/caller.ts'
import { acceptReembedding } from '#shared/vault/reembed/reembed.ts'

/** Gives every memory of the vault a vector of another model, while it can be searched by both. */
export function reembed(router: Router, backend: Backend): void {
  router.post('/v1/memory/reembed', async ctx => {
    const caller = await authenticateRequest(ctx, backend)
    requireStorePermission(caller)
    const body = await parseBody(ctx, ReembedBody)
    if (isFirstAttempt(ctx)) requireQueueCapacity(caller)
    const { model } = await backend.embedders.get(body.embeddings)

    const operation = operationId(ctx)
    await acceptReembedding(backend, caller, {
      operation,
      model,
      dropPrevious: body.drop_previous,
      awaited: !prefersAsync(ctx),
    })
    await sendOperationOutcome(ctx, backend, caller, operation)
  })
}
