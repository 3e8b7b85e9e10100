import type { Router } from '@koa/router'
import { CheckoutBody } from '#api/contract/contract.ts'
import { isFirstAttempt, operationId } from '#api/edge/idempotency.ts'
import { presentBatch, presentEmptyCheckout } from '#api/present/checkout.ts'
import {
  parseBody,
  authenticateRequest,
  embeddingModelForRequest,
  resolveSession,
} from '#api/edge/request.ts'
import { requireBalance } from '#shared/billing/admission-checks.ts'
import type { Backend } from '#shared/backend.ts'
import { requireRetrievePermission, requireStorePermission } from '#shared/access/caller.ts'
import { checkOut, findUnconsolidatedInOtherSpace } from '#shared/vault/consolidate/checkout.ts'

/** Lends the oldest memories that no reflection covers; with none left it says so. */
export function checkout(router: Router, backend: Backend): void {
  router.post('/v1/memory/consolidate/checkout', async ctx => {
    const caller = await authenticateRequest(ctx, backend)
    requireRetrievePermission(caller)
    requireStorePermission(caller)
    const body = await parseBody(ctx, CheckoutBody)
    if (isFirstAttempt(ctx)) requireBalance(caller)

    const criteria = { tier: body.tier, embeddings: embeddingModelForRequest(ctx, body.embeddings) }
    const batch = await checkOut(backend, caller, {
      ...criteria,
      batch: operationId(ctx),
      maxTokens: body.max_tokens,
      session: resolveSession(ctx, body.session_id),
    })
    ctx.body = batch
      ? presentBatch(batch)
      : presentEmptyCheckout(
          body.tier,
          await findUnconsolidatedInOtherSpace(backend, caller, criteria),
        )
  })
}
