import type { Router } from '@koa/router'
import { DateSearchBody } from '#api/contract/contract.ts'
import { presentDated } from '#api/present/dated.ts'
import { presentDebt } from '#api/present/debt.ts'
import { bodyOf, callerOf, embeddingsOf, sessionOf } from '#api/request.ts'
import { recordRead } from '#shared/account/meter.ts'
import { requireBalance } from '#shared/account/standing.ts'
import type { Backend } from '#shared/backend.ts'
import { requireRetrieve } from '#shared/key/caller.ts'
import { searchDates } from '#shared/memory/date-search.ts'
import { tiers as allTiers } from '#shared/memory/memory.ts'
import { askedWindow } from '#shared/memory/time-window.ts'
import { debtOf } from '#shared/reflection/debt.ts'

/** What happened in a span of time, in order or by relevance. */
export function dateSearch(router: Router, backend: Backend): void {
  router.post('/v1/memory/date-search', async ctx => {
    const caller = await callerOf(ctx, backend)
    requireRetrieve(caller)
    requireBalance(caller)
    const body = await bodyOf(ctx, DateSearchBody)
    const { from, to, query, tiers = allTiers, max_tokens: maxTokens, order, importance } = body
    const session = sessionOf(ctx)
    const window = askedWindow(from, to, backend.now())

    const { rows, tokens, truncated, returned } = await searchDates(backend, caller, {
      window,
      session,
      query,
      embeddings: embeddingsOf(ctx),
      tiers,
      importance,
      maxTokens,
      order,
    })
    recordRead(backend, caller, { kind: 'date-search', tokens, session })

    ctx.body = {
      from: new Date(window.from.at).toISOString(),
      to: new Date(window.to.at).toISOString(),
      order,
      returned,
      truncated,
      count: rows.length,
      token_count: tokens,
      memories: rows.map(row => presentDated(row, session)),
      reflection: presentDebt(debtOf(caller.row)),
    }
  })
}
