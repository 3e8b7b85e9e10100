import type { Router } from '@koa/router'
import { ReembedBody } from '#api/contract/contract.ts'
import { asksAnew, operationOf } from '#api/idempotency.ts'
import { answerQueued, respondsAsync } from '#api/queued.ts'
import { bodyOf, callerOf } from '#api/request.ts'
import { requireRoom } from '#shared/account/standing.ts'
import type { Backend } from '#shared/backend.ts'
import { requireStore } from '#shared/key/caller.ts'
import { acceptReembedding } from '#shared/memory/reembed.ts'

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
