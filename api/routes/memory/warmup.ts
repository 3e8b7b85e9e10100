import type { Router } from '@koa/router'
import { WarmupBody } from '#api/contract/contract.ts'
import {
  parseBody,
  authenticateRequest,
  embeddingModelForRequest,
  resolveSession,
} from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { requireRetrievePermission } from '#shared/access/caller.ts'
import { warmUp } from '#shared/vault/read/warmup.ts'

/** Loads the vault, or a session vault, so that the next question does not wait for it. */
export function warmup(router: Router, backend: Backend): void {
  router.post('/v1/memory/warmup', async ctx => {
    const begun = performance.now()
    const caller = await authenticateRequest(ctx, backend)
    requireRetrievePermission(caller)
    const { session_id: session, embeddings } = await parseBody(ctx, WarmupBody)
    const sessionId = resolveSession(ctx, session)
    const loaded = await warmUp(
      backend,
      caller,
      sessionId,
      embeddingModelForRequest(ctx, embeddings),
    )
    ctx.body = {
      status: loaded === null ? 'too-large' : 'warm',
      key: caller.maskedKey,
      memories_loaded: loaded ?? 0,
      warmup_ms: Math.round((performance.now() - begun) * 10) / 10,
    }
  })
}
