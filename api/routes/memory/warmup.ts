import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { embeddingModelForRequest, resolveSession } from '#api/edge/request.ts'
import { requireRetrievePermission } from '#shared/access/caller.ts'
import { warmUp } from '#shared/vault/read/search/warmup.ts'

/** Loads the vault, or a session vault, so that the next search does not wait for it. */
export function warmup(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/memory/warmup',
    auth: memoryKey(requireRetrievePermission),
    async handle({ caller, body, query, startedAt }, ctx) {
      const { session_id: session, embeddings } = body
      const sessionId = resolveSession(ctx, session, query.session_id)
      const loaded = await warmUp(
        backend,
        caller,
        sessionId,
        embeddingModelForRequest(ctx, caller, embeddings, query.embeddings),
      )
      ctx.body = {
        status: loaded === null ? 'too-large' : 'warm',
        key: caller.maskedKey,
        memories_loaded: loaded ?? 0,
        warmup_ms: Math.round((performance.now() - startedAt) * 10) / 10,
      }
    },
  })
}
