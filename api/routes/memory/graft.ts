import type { Router } from '@koa/router'
import { GraftBody } from '#api/contract/contract.ts'
import { isFirstAttempt, operationId } from '#api/edge/idempotency.ts'
import { presentCopyCandidate } from '#api/present/copy-candidate.ts'
import { sendOperationOutcome, prefersAsync } from '#api/edge/operation-response.ts'
import {
  parseBody,
  authenticateRequest,
  embeddingModelForRequest,
  requestedEmbeddingModel,
} from '#api/edge/request.ts'
import { requireBalance } from '#shared/billing/admission-checks.ts'
import type { Backend } from '#shared/backend.ts'
import { acceptCopy } from '#shared/vault/copy/accept.ts'
import { compareByEventTime, graftCandidates } from '#shared/vault/copy/candidates.ts'
import { resolveDestination } from '#shared/vault/copy/destination.ts'
import { requireRetrievePermission } from '#shared/access/caller.ts'

/** Copies what matches the queries to the vault of another key, or previews it. */
export function graft(router: Router, backend: Backend): void {
  router.post('/v1/memory/graft', async ctx => {
    const caller = await authenticateRequest(ctx, backend)
    requireRetrievePermission(caller)
    const body = await parseBody(ctx, GraftBody)
    if (isFirstAttempt(ctx)) requireBalance(caller)
    const { queries, threshold } = body
    const destination = await resolveDestination(backend, caller, body.destination_key)
    const embedder = await backend.embedders.get(embeddingModelForRequest(ctx, body.embeddings))
    const matches = await graftCandidates(backend, caller, { embedder, queries, threshold })

    if (body.dry_run === true) {
      ctx.body = {
        dry_run: true,
        operation: 'graft',
        source_key: caller.maskedKey,
        destination_key: destination.key,
        queries,
        threshold,
        count: matches.length,
        estimated_tokens: matches.reduce((sum, { memory }) => sum + memory.tokens, 0),
        memories: matches.map(({ memory, score }) => ({ ...presentCopyCandidate(memory), score })),
      }
      return
    }
    const operation = operationId(ctx)
    const memories = matches.map(({ memory }) => memory).sort(compareByEventTime)
    await acceptCopy(backend, caller, {
      operation,
      kind: 'graft',
      destination,
      model:
        requestedEmbeddingModel(ctx, body.embeddings) ?? destination.embeddings ?? embedder.model,
      ids: memories.map(({ id }) => id),
      graftQuery: { queries, threshold },
      awaited: !prefersAsync(ctx),
    })
    await sendOperationOutcome(ctx, backend, caller, operation)
  })
}
