import type { Router } from '@koa/router'
import { TransferBody } from '#api/contract/contract.ts'
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
import { transferCandidates } from '#shared/vault/copy/candidates.ts'
import { resolveDestination } from '#shared/vault/copy/destination.ts'
import { requireRetrievePermission } from '#shared/access/caller.ts'

/** Copies the raw core memories of the key's vault to the vault of another key, or previews it. */
export function transfer(router: Router, backend: Backend): void {
  router.post('/v1/memory/transfer', async ctx => {
    const caller = await authenticateRequest(ctx, backend)
    requireRetrievePermission(caller)
    const body = await parseBody(ctx, TransferBody)
    if (isFirstAttempt(ctx)) requireBalance(caller)
    const destination = await resolveDestination(backend, caller, body.destination_key)
    const embedder = await backend.embedders.get(embeddingModelForRequest(ctx, body.embeddings))
    const memories = await transferCandidates(backend, caller, embedder)

    if (body.dry_run === true) {
      ctx.body = {
        dry_run: true,
        operation: 'transfer',
        source_key: caller.maskedKey,
        destination_key: destination.key,
        count: memories.length,
        estimated_tokens: memories.reduce((sum, { tokens }) => sum + tokens, 0),
        memories: memories.map(presentCopyCandidate),
      }
      return
    }
    const operation = operationId(ctx)
    await acceptCopy(backend, caller, {
      operation,
      kind: 'transfer',
      destination,
      model:
        requestedEmbeddingModel(ctx, body.embeddings) ?? destination.embeddings ?? embedder.model,
      ids: memories.map(({ id }) => id),
      graftQuery: null,
      awaited: !prefersAsync(ctx),
    })
    await sendOperationOutcome(ctx, backend, caller, operation)
  })
}
