import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentBatch, presentEmptyCheckout } from '#api/present/checkout.ts'
import { embeddingModelForRequest, resolveSession } from '#api/edge/request.ts'
import { requireBalance } from '#shared/billing/admission-checks.ts'
import { requireRetrievePermission, requireStorePermission } from '#shared/access/caller.ts'
import { checkOut, findUnconsolidatedInOtherSpace } from '#shared/vault/consolidate/checkout.ts'

/** Checks out a batch of the oldest memories that no reflection covers. */
export function checkout(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/memory/consolidate/checkout',
    auth: memoryKey(requireRetrievePermission, requireStorePermission),
    admit: ({ caller }) => requireBalance(caller),
    async handle({ caller, body, query, claim }, ctx) {
      const criteria = {
        tier: body.tier,
        embeddings: embeddingModelForRequest(ctx, caller, body.embeddings, query.embeddings),
      }
      const batch = await checkOut(backend, caller, {
        ...criteria,
        batch: claim.operation,
        maxTokens: body.max_tokens,
        session: resolveSession(ctx, body.session_id, query.session_id),
      })
      ctx.body = batch
        ? presentBatch(batch)
        : presentEmptyCheckout(
            body.tier,
            await findUnconsolidatedInOtherSpace(backend, caller, criteria),
          )
    },
  })
}
