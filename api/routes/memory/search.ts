import { parseMetadataFilter } from '#shared/domain/metadata.ts'
import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentDebt } from '#api/present/debt.ts'
import { breakDownResults, presentSearchResult } from '#api/present/search-result.ts'
import { embeddingModelForRequest, resolveSession } from '#api/edge/request.ts'
import { requireBalance } from '#shared/billing/admission-checks.ts'
import { recordRead } from '#shared/billing/meter.ts'
import { requireReadableVault } from '#shared/access/caller.ts'
import { momentOf, parseAsOf } from '#shared/vault/read/search/as-of.ts'
import { recallReranked } from '#shared/vault/read/search/recall.ts'
import { sharedIdsOf } from '#shared/vault/read/search/retrieval-trail.ts'
import { reflectionDebt } from '#shared/vault/consolidate/debt.ts'

/** Searches the core vault, or with a session that session. */
export function search(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/memory/search',
    auth: memoryKey(requireReadableVault),
    admit: ({ caller }) => caller.permissions.retrieve && requireBalance(caller),
    async handle({ caller, body, query: parameters }, ctx) {
      const { query, limit, tiers, importance } = body
      const asOf = parseAsOf(body.as_of)
      const session = resolveSession(ctx, body.session_id, parameters.session_id)

      const question = {
        text: query,
        limit,
        tiers,
        importance,
        metadata: parseMetadataFilter(body.metadata),
        minScore: body.min_relevance,
        asOf,
      }
      let matchingMemories = 0
      const embeddings = [body.embeddings, parameters.embeddings]
      const results = caller.permissions.retrieve
        ? await recallReranked(backend, caller, {
            ...question,
            onMatchCount: count => (matchingMemories += count),
            sessions: [session],
            embeddings: embeddingModelForRequest(ctx, caller, ...embeddings),
            relevantOnly: false,
          })
        : []
      if (caller.memberScope && caller.permissions.retrieve) {
        const returned = sharedIdsOf(results.map(({ memory }) => memory))
        backend.retrievals.record(caller.memberScope, { request: 'search', returned, question })
      }
      const now = momentOf(backend, asOf)
      const { windows, tiers: tierBreakdown, tokens } = breakDownResults(results, now)
      recordRead(backend, caller, { kind: 'search', tokens, session })

      ctx.body = {
        query,
        sessionId: session,
        memoryKey: caller.maskedKey,
        totalMemories: results.length,
        matchingMemories,
        tokenCount: tokens,
        windowBreakdown: windows,
        tierBreakdown,
        memories: results.map(row => presentSearchResult(row, now)),
        reflection: presentDebt(reflectionDebt(caller.keyRow)),
      }
    },
  })
}
