import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentDebt } from '#api/present/debt.ts'
import { embeddingModelForRequest, resolveSession } from '#api/edge/request.ts'
import { recordRead } from '#shared/billing/meter.ts'
import { requireBalance } from '#shared/billing/admission-checks.ts'
import { requireRetrievePermission } from '#shared/access/caller.ts'
import { prepareContext } from '#shared/vault/read/prepare.ts'
import { reflectionDebt } from '#shared/vault/consolidate/debt.ts'

/** The context block for a prompt: memories of core and session on a conversation's last turns. */
export function prepare(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/memory/prepare',
    auth: memoryKey(requireRetrievePermission),
    admit: ({ caller }) => requireBalance(caller),
    async handle({ caller, body, startedAt }, ctx) {
      const session = resolveSession(ctx, body.session_id)

      const { context, memories, recalledTokens, contextTokens } = await prepareContext(
        backend,
        caller,
        {
          messages: body.messages,
          session,
          embeddings: embeddingModelForRequest(ctx, caller, body.embeddings),
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
        metrics: { total_ms: Math.round((performance.now() - startedAt) * 10) / 10 },
        reflection: presentDebt(reflectionDebt(caller.keyRow)),
      }
    },
  })
}
