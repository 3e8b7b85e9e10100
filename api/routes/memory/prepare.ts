import { parseMetadataFilter } from '#shared/domain/metadata.ts'
import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentBlockLine } from '#api/present/search-result.ts'
import { presentDebt } from '#api/present/debt.ts'
import { embeddingModelForRequest } from '#api/edge/request.ts'
import { resolveSessionSpace } from '#api/edge/session-space.ts'
import { recordRead } from '#shared/billing/meter.ts'
import { requireBalance } from '#shared/billing/admission-checks.ts'
import { requireReadableVault } from '#shared/access/caller.ts'
import { parseAsOf } from '#shared/vault/read/search/as-of.ts'
import { withContent } from '#shared/domain/message-content.ts'
import { prepareContext } from '#shared/vault/read/prepare/prepare.ts'
import { reflectionDebt } from '#shared/vault/consolidate/debt.ts'

/** The context block for a prompt: memories of core and session on a conversation's last turns. */
export function prepare(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/memory/prepare',
    auth: memoryKey(requireReadableVault),
    admit: ({ caller }) => caller.permissions.retrieve && requireBalance(caller),
    async handle({ caller, body, query, startedAt }, ctx) {
      const { session } = resolveSessionSpace(ctx, { inBody: body.session_id, query })

      const { context, memories, ranking, recalledTokens, contextTokens, confidence, abstained } =
        caller.permissions.retrieve
          ? await prepareContext(backend, caller, {
              messages: body.messages.map(withContent),
              session,
              embeddings: embeddingModelForRequest(ctx, caller, body.embeddings, query.embeddings),
              density: body.density,
              limit: body.context_limit,
              tiers: body.tiers,
              importance: body.importance,
              metadata: parseMetadataFilter(body.metadata),
              minScore: body.min_relevance,
              asOf: parseAsOf(body.as_of),
            })
          : nothingPrepared
      recordRead(backend, caller, { kind: 'prepare', tokens: recalledTokens, session })

      ctx.body = {
        context,
        memories_found: memories,
        memories: ranking.map(presentBlockLine),
        confidence: Math.round(confidence * 100) / 100,
        abstained,
        memory_tokens: contextTokens,
        retrieval_tokens: recalledTokens,
        tokens_billed: recalledTokens,
        metrics: { total_ms: Math.round((performance.now() - startedAt) * 10) / 10 },
        reflection: presentDebt(reflectionDebt(caller.keyRow)),
      }
    },
  })
}

/** For a key that may not read. */
const nothingPrepared = {
  context: null,
  memories: 0,
  ranking: [],
  recalledTokens: 0,
  contextTokens: 0,
  confidence: 0,
  abstained: 'off',
} as const
