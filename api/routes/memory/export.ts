import type { Router } from '@koa/router'
import { ExportVaultQuery } from '#api/contract/contract.ts'
import { sendNdjson } from '#api/edge/ndjson.ts'
import {
  authenticateRequest,
  embeddingModelForRequest,
  parseQuery,
  resolveSession,
} from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { exportMemories } from '#shared/vault/bulk/export-memories.ts'
import { requireRetrievePermission } from '#shared/access/caller.ts'

/** Streams a vault as JSON lines; what it sends is what `POST /v1/memory/import` takes. */
export function exportVault(router: Router, backend: Backend): void {
  router.get('/v1/memory/export', async ctx => {
    const caller = await authenticateRequest(ctx, backend)
    requireRetrievePermission(caller)
    const { vectors, sessions } = parseQuery(ctx, ExportVaultQuery)
    const session = resolveSession(ctx)
    const lines = exportMemories(backend, caller.scope, {
      session: session ?? (sessions ? undefined : null),
      embedder: vectors ? await backend.embedders.get(embeddingModelForRequest(ctx)) : undefined,
    })
    await sendNdjson(ctx, lines)
  })
}
