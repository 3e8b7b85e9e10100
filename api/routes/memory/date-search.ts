import type { Router } from '@koa/router'
import { DateSearchBody } from '#api/contract/contract.ts'
import { asksAnew } from '#api/edge/idempotency.ts'
import { presentDated } from '#api/present/dated.ts'
import { presentDebt } from '#api/present/debt.ts'
import { bodyOf, callerOf, embeddingsOf, namedEmbeddings, sessionOf } from '#api/edge/request.ts'
import { recordRead } from '#shared/billing/meter.ts'
import { requireBalance } from '#shared/billing/requirements.ts'
import type { Backend } from '#shared/backend.ts'
import { requireRetrieve } from '#shared/access/caller.ts'
import { searchDates } from '#shared/vault/read/date-search.ts'
import { tiers as allTiers } from '#shared/domain/memory.ts'
import { askedWindow } from '#shared/vault/read/time-window.ts'
import { debtOf } from '#shared/vault/consolidate/debt.ts'

/** What happened in a span of time, in order or by relevance. */
export function dateSearch(router: Router, backend: Backend): void {
  router.post('/v1/memory/date-search', async ctx => {
    const caller = await callerOf(ctx, backend)
    requireRetrieve(caller)
    const body = await bodyOf(ctx, DateSearchBody)
    if (asksAnew(ctx)) requireBalance(caller)
    const { from, to, query, tiers = allTiers, max_tokens: maxTokens, order, importance } = body
    const session = sessionOf(ctx)
    const window = askedWindow(from, to, backend.now())

    const { rows, tokens, truncated, returned } = await searchDates(backend, caller, {
      window,
      session,
      query,
      // In order, a span of time is told of all spaces.
      embeddings: query === undefined ? namedEmbeddings(ctx) : embeddingsOf(ctx),
      tiers,
      importance,
      maxTokens,
      order,
    })
    if (caller.member) backend.retrievals.record(caller.member)
    recordRead(backend, caller, { kind: 'date-search', tokens, session })

    ctx.body = {
      from: new Date(window.from.at).toISOString(),
      to: new Date(window.to.at).toISOString(),
      order,
      returned,
      truncated,
      count: rows.length,
      token_count: tokens,
      memories: rows.map(presentDated),
      reflection: presentDebt(debtOf(caller.row)),
    }
  })
}
