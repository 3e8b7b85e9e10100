import type { Router } from '@koa/router'
import { CheckoutBody } from '#api/contract/contract.ts'
import { asksAnew, operationOf } from '#api/edge/idempotency.ts'
import { presentBatch, presentNothing } from '#api/present/reflection.ts'
import { bodyOf, callerOf, embeddingsOf, sessionOf } from '#api/edge/request.ts'
import { requireBalance } from '#shared/billing/requirements.ts'
import type { Backend } from '#shared/backend.ts'
import { requireRetrieve, requireStore } from '#shared/access/caller.ts'
import { checkOut, waitingElsewhere } from '#shared/vault/consolidate/checkout.ts'

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
