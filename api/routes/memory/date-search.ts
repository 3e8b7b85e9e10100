import { parseMetadataFilter } from '#shared/domain/metadata.ts'
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
import { searchDates } from '#shared/vault/read/lists/date-search.ts'
import { tiers as allTiers } from '#shared/domain/memory.ts'
import { parseAsOf } from '#shared/vault/read/search/as-of.ts'
import { parseTimeWindow, windowAsOf } from '#shared/vault/read/lists/time-window.ts'
import { sharedIdsOf } from '#shared/vault/read/search/retrieval-trail.ts'
import { reflectionDebt } from '#shared/vault/consolidate/debt.ts'

/** The memories of a time window, by time or by relevance. */
export function dateSearch(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/memory/date-search',
    auth: memoryKey(requireRetrievePermission),
    admit: ({ caller }) => requireBalance(caller),
    async handle({ caller, body, query: parameters }, ctx) {
      const { from, to, query, tiers = allTiers, max_tokens: maxTokens, order, importance } = body
      const session = resolveSession(ctx, body.session_id, parameters.session_id)
      const spaces = [body.embeddings, parameters.embeddings] as const
      const window = windowAsOf(parseTimeWindow(from, to, backend.now()), parseAsOf(body.as_of))

      const metadata = parseMetadataFilter(body.metadata)
      const { rows, tokens, truncated, returned } = await searchDates(backend, caller, {
        window,
        session,
        query,
        // Without a query the memories of all spaces are listed by time.
        embeddings:
          query === undefined
            ? requestedEmbeddingModel(ctx, ...spaces)
            : embeddingModelForRequest(ctx, caller, ...spaces),
        tiers,
        importance,
        metadata,
        maxTokens,
        order,
      })
      if (caller.memberScope) {
        backend.retrievals.record(caller.memberScope, {
          request: 'date-search',
          returned: sharedIdsOf(rows),
          question:
            query === undefined
              ? null
              : {
                  text: query,
                  tiers,
                  importance,
                  metadata,
                  within: { from: window.from, to: window.to + 1 },
                  ...(truncated && { limit: rows.length }),
                },
        })
      }
      recordRead(backend, caller, { kind: 'date-search', tokens, session })

      ctx.body = {
        from: new Date(window.from).toISOString(),
        to: new Date(window.to).toISOString(),
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
