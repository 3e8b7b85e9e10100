import type { Router } from '@koa/router'
import { ReembedBody } from '#api/contract/contract.ts'
import { asksAnew, operationOf } from '#api/edge/idempotency.ts'
import { answerQueued, respondsAsync } from '#api/edge/queued.ts'
import { bodyOf, callerOf } from '#api/edge/request.ts'
import { requireRoom } from '#shared/billing/requirements.ts'
import type { Backend } from '#shared/backend.ts'
import { requireStore } from '#shared/access/caller.ts'
import { acceptReembedding } from '#shared/vault/reembed/reembed.ts'

/** Gives every memory of the vault a vector of another model, while it can be searched by both. */
export function reembed(router: Router, backend: Backend): void {
  router.post('/v1/memory/reembed', async ctx => {
    const caller = await callerOf(ctx, backend)
    requireStore(caller)
    const body = await bodyOf(ctx, ReembedBody)
    if (asksAnew(ctx)) requireRoom(caller)
    const { model } = await backend.embedders.get(body.embeddings)

    const operation = operationOf(ctx)
    await acceptReembedding(backend, caller, {
      operation,
      model,
      dropPrevious: body.drop_previous,
      awaited: !respondsAsync(ctx),
    })
    await answerQueued(ctx, backend, caller, operation)
  })
}
