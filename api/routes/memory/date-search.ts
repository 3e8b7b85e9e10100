import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentDateSearchRow } from '#api/present/date-search-row.ts'
import { presentDebt } from '#api/present/debt.ts'
import {
  embeddingModelForRequest,
  requestedEmbeddingModel,
  resolveSession,
} from '#api/edge/request.ts'
import { recordRead } from '#shared/billing/meter.ts'
import { requireBalance } from '#shared/billing/admission-checks.ts'
import { requireRetrievePermission } from '#shared/access/caller.ts'
import { searchDates } from '#shared/vault/read/date-search.ts'
import { tiers as allTiers } from '#shared/domain/memory.ts'
import { parseTimeWindow } from '#shared/vault/read/time-window.ts'
import { reflectionDebt } from '#shared/vault/consolidate/debt.ts'

/** The memories of a time window, by time or by relevance. */
export function dateSearch(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/memory/date-search',
    auth: memoryKey(requireRetrievePermission),
    admit: ({ caller }) => requireBalance(caller),
    async handle({ caller, body }, ctx) {
      const { from, to, query, tiers = allTiers, max_tokens: maxTokens, order, importance } = body
      const session = resolveSession(ctx)
      const window = parseTimeWindow(from, to, backend.now())

      const { rows, tokens, truncated, returned } = await searchDates(backend, caller, {
        window,
        session,
        query,
        // Without a query the memories of all spaces are listed by time.
        embeddings:
          query === undefined
            ? requestedEmbeddingModel(ctx)
            : embeddingModelForRequest(ctx, caller),
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
    },
  })
}
