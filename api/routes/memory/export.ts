import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { sendNdjson } from '#api/edge/ndjson.ts'
import { embeddingModelForRequest, resolveSession } from '#api/edge/request.ts'
import { exportMemories } from '#shared/vault/bulk/export-memories.mongo.ts'
import { requireRetrievePermission } from '#shared/access/caller.ts'

/** Streams a vault as the JSON lines that `POST /v1/memory/import` takes. */
export function exportVault(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'GET /v1/memory/export',
    auth: memoryKey(requireRetrievePermission),
    async handle({ caller, query }, ctx) {
      const { vectors, sessions } = query
      const session = resolveSession(ctx, query.session_id)
      const lines = exportMemories(backend, caller.scope, {
        session: session ?? (sessions ? undefined : null),
        embedder: vectors
          ? await backend.embedders.get(embeddingModelForRequest(ctx, caller, query.embeddings))
          : undefined,
      })
      await sendNdjson(ctx, lines)
    },
  })
}
