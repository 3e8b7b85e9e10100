import type { Router } from '@koa/router'
import { PrepareBody } from '#api/contract/contract.ts'
import { isFirstAttempt } from '#api/edge/idempotency.ts'
import { presentDebt } from '#api/present/debt.ts'
import {
  parseBody,
  authenticateRequest,
  embeddingModelForRequest,
  resolveSession,
} from '#api/edge/request.ts'
import { recordRead } from '#shared/billing/meter.ts'
import { requireBalance } from '#shared/billing/admission-checks.ts'
import type { Backend } from '#shared/backend.ts'
import { requireRetrievePermission } from '#shared/access/caller.ts'
import { prepareContext } from '#shared/vault/read/prepare.ts'
import { reflectionDebt } from '#shared/vault/consolidate/debt.ts'

/** The block to put into a prompt: what core and session remember about a conversation's last turns. */
export function prepare(router: Router, backend: Backend): void {
  router.post('/v1/memory/prepare', async ctx => {
    const begun = performance.now()
    const caller = await authenticateRequest(ctx, backend)
    requireRetrievePermission(caller)
    const body = await parseBody(ctx, PrepareBody, 'large')
    if (isFirstAttempt(ctx)) requireBalance(caller)
    const session = resolveSession(ctx, body.session_id)

    const { context, memories, recalledTokens, contextTokens } = await prepareContext(
      backend,
      caller,
      {
        messages: body.messages,
        session,
        embeddings: embeddingModelForRequest(ctx, body.embeddings),
        density: body.density,
        limit: body.context_limit,
        tiers: body.tiers,
        importance: body.importance,
      },
    )
    recordRead(backend, caller, { kind: 'prepare', tokens: recalledTokens, session })

    ctx.body = {
      context,
      memories_found: memories,
      memory_tokens: contextTokens,
      retrieval_tokens: recalledTokens,
      tokens_billed: recalledTokens,
      metrics: { total_ms: Math.round((performance.now() - begun) * 10) / 10 },
      reflection: presentDebt(reflectionDebt(caller.keyRow)),
    }
  })
}
