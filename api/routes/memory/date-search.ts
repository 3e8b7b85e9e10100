import type { Router } from '@koa/router'
import { DateSearchBody } from '#api/contract/contract.ts'
import { isFirstAttempt } from '#api/edge/idempotency.ts'
import { presentDateSearchRow } from '#api/present/date-search-row.ts'
import { presentDebt } from '#api/present/debt.ts'
import {
  parseBody,
  authenticateRequest,
  embeddingModelForRequest,
  requestedEmbeddingModel,
  resolveSession,
} from '#api/edge/request.ts'
import { recordRead } from '#shared/billing/meter.ts'
import { requireBalance } from '#shared/billing/admission-checks.ts'
import type { Backend } from '#shared/backend.ts'
import { requireRetrievePermission } from '#shared/access/caller.ts'
import { searchDates } from '#shared/vault/read/date-search.ts'
import { tiers as allTiers } from '#shared/domain/memory.ts'
import { parseTimeWindow } from '#shared/vault/read/time-window.ts'
import { reflectionDebt } from '#shared/vault/consolidate/debt.ts'

/** What happened in a span of time, in order or by relevance. */
export function dateSearch(router: Router, backend: Backend): void {
  router.post('/v1/memory/date-search', async ctx => {
    const caller = await authenticateRequest(ctx, backend)
    requireRetrievePermission(caller)
    const body = await parseBody(ctx, DateSearchBody)
    if (isFirstAttempt(ctx)) requireBalance(caller)
    const { from, to, query, tiers = allTiers, max_tokens: maxTokens, order, importance } = body
    const session = resolveSession(ctx)
    const window = parseTimeWindow(from, to, backend.now())

    const { rows, tokens, truncated, returned } = await searchDates(backend, caller, {
      window,
      session,
      query,
      // In order, a span of time is told of all spaces.
      embeddings:
        query === undefined ? requestedEmbeddingModel(ctx) : embeddingModelForRequest(ctx),
      tiers,
      importance,
      maxTokens,
      order,
    })
    if (caller.memberScope) backend.retrievals.record(caller.memberScope)
    recordRead(backend, caller, { kind: 'date-search', tokens, session })

    ctx.body = {
      from: new Date(window.from.at).toISOString(),
      to: new Date(window.to.at).toISOString(),
      order,
      returned,
      truncated,
      count: rows.length,
      token_count: tokens,
      memories: rows.map(presentDateSearchRow),
      reflection: presentDebt(reflectionDebt(caller.keyRow)),
    }
  })
}
