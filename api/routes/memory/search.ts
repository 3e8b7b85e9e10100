import type { Router } from '@koa/router'
import { SearchBody } from '#api/contract/contract.ts'
import { asksAnew } from '#api/edge/idempotency.ts'
import { presentDebt } from '#api/present/debt.ts'
import { breakdownOf, presentFound } from '#api/present/memory.ts'
import { bodyOf, callerOf, embeddingsOf, sessionOf } from '#api/edge/request.ts'
import { requireBalance } from '#shared/billing/requirements.ts'
import type { Backend } from '#shared/backend.ts'
import { recordRead } from '#shared/billing/meter.ts'
import { requireRetrieve } from '#shared/access/caller.ts'
import { recall } from '#shared/vault/read/recall.ts'
import { debtOf } from '#shared/vault/consolidate/debt.ts'

/** What the vault, or with a session that session, remembers about a query. */
export function search(router: Router, backend: Backend): void {
  router.post('/v1/memory/search', async ctx => {
    const caller = await callerOf(ctx, backend)
    requireRetrieve(caller)
    const body = await bodyOf(ctx, SearchBody)
    if (asksAnew(ctx)) requireBalance(caller)
    const { query, limit, tiers, importance } = body
    const session = sessionOf(ctx, body.session_id)

    const found = await recall(backend, caller, {
      text: query,
      limit,
      sessions: [session],
      embeddings: embeddingsOf(ctx, body.embeddings),
      tiers,
      importance,
      floor: false,
    })
    if (caller.member) backend.retrievals.record(caller.member)
    const now = backend.now()
    const { windows, tiers: tierBreakdown, tokens } = breakdownOf(found, now)
    recordRead(backend, caller, { kind: 'search', tokens, session })

    ctx.body = {
      query,
      sessionId: session,
      memoryKey: caller.maskedKey,
      totalMemories: found.length,
      tokenCount: tokens,
      windowBreakdown: windows,
      tierBreakdown,
      memories: found.map(row => presentFound(row, now)),
      reflection: presentDebt(debtOf(caller.row)),
    }
  })
}
