import type { Router } from '@koa/router'
import { PrepareBody } from '#api/contract/contract.ts'
import { asksAnew } from '#api/edge/idempotency.ts'
import { presentDebt } from '#api/present/debt.ts'
import { bodyOf, callerOf, embeddingsOf, sessionOf } from '#api/edge/request.ts'
import { recordRead } from '#shared/billing/meter.ts'
import { requireBalance } from '#shared/billing/requirements.ts'
import type { Backend } from '#shared/backend.ts'
import { requireRetrieve } from '#shared/access/caller.ts'
import { prepareContext } from '#shared/vault/read/prepare.ts'
import { debtOf } from '#shared/vault/consolidate/debt.ts'

/** The block to put into a prompt: what core and session remember about a conversation's last turns. */
export function prepare(router: Router, backend: Backend): void {
  router.post('/v1/memory/prepare', async ctx => {
    const begun = performance.now()
    const caller = await callerOf(ctx, backend)
    requireRetrieve(caller)
    const body = await bodyOf(ctx, PrepareBody, 'large')
    if (asksAnew(ctx)) requireBalance(caller)
    const session = sessionOf(ctx, body.session_id)

    const { context, memories, recalledTokens, contextTokens } = await prepareContext(
      backend,
      caller,
      {
        messages: body.messages,
        session,
        embeddings: embeddingsOf(ctx, body.embeddings),
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
      reflection: presentDebt(debtOf(caller.row)),
    }
  })
}
