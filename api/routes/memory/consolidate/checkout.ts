import type { Router } from '@koa/router'
import { CheckoutBody } from '#api/contract/contract.ts'
import { asksAnew, operationOf } from '#api/idempotency.ts'
import { presentBatch, presentNothing } from '#api/present/reflection.ts'
import { bodyOf, callerOf, embeddingsOf, sessionOf } from '#api/request.ts'
import { requireBalance } from '#shared/account/standing.ts'
import type { Backend } from '#shared/backend.ts'
import { requireRetrieve, requireStore } from '#shared/key/caller.ts'
import { checkOut, waitingElsewhere } from '#shared/reflection/checkout.ts'

/** Lends the oldest memories that no reflection covers; with none left it says so. */
export function checkout(router: Router, backend: Backend): void {
  router.post('/v1/memory/consolidate/checkout', async ctx => {
    const caller = await callerOf(ctx, backend)
    requireRetrieve(caller)
    requireStore(caller)
    const body = await bodyOf(ctx, CheckoutBody)
    if (asksAnew(ctx)) requireBalance(caller)

    const asked = { tier: body.tier, embeddings: embeddingsOf(ctx, body.embeddings) }
    const batch = await checkOut(backend, caller, {
      ...asked,
      batch: operationOf(ctx),
      maxTokens: body.max_tokens,
      session: sessionOf(ctx, body.session_id),
    })
    ctx.body = batch
      ? presentBatch(batch)
      : presentNothing(body.tier, await waitingElsewhere(backend, caller, asked))
  })
}
