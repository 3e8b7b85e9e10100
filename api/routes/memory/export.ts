import type { Router } from '@koa/router'
import { ExportVaultQuery } from '#api/contract/contract.ts'
import { answerLines } from '#api/edge/lines.ts'
import { callerOf, embeddingsOf, queryOf, sessionOf } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { exportedLines } from '#shared/vault/bulk/export.ts'
import { requireRetrieve } from '#shared/access/caller.ts'

/** Streams a vault as JSON lines; what it sends is what `POST /v1/memory/import` takes. */
export function exportVault(router: Router, backend: Backend): void {
  router.get('/v1/memory/export', async ctx => {
    const caller = await callerOf(ctx, backend)
    requireRetrieve(caller)
    const { vectors, sessions } = queryOf(ctx, ExportVaultQuery)
    const asked = sessionOf(ctx)
    const lines = exportedLines(backend, caller.scope, {
      session: asked ?? (sessions ? undefined : null),
      embedder: vectors ? await backend.embedders.get(embeddingsOf(ctx)) : undefined,
    })
    await answerLines(ctx, lines)
  })
}
