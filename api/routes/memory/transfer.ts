import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentCopyCandidate } from '#api/present/copy-candidate.ts'
import { sendOperationOutcome, prefersAsync } from '#api/edge/operation-response.ts'
import { embeddingModelForRequest, requestedEmbeddingModel, resolveDryRun } from '#api/edge/request.ts'
import { requireBalance } from '#shared/billing/admission-checks.ts'
import { acceptCopy, resolveDestination } from '#shared/vault/copy/accept.ts'
import { transferCandidates } from '#shared/vault/copy/candidates.ts'
import { requireRetrievePermission } from '#shared/access/caller.ts'

/** Copies the raw core memories of the key's vault to the vault of another key, or previews it. */
export function transfer(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/memory/transfer',
    auth: memoryKey(requireRetrievePermission),
    admit: ({ caller }) => requireBalance(caller),
    async handle({ caller, body, query, claim }, ctx) {
      const destination = await resolveDestination(backend, caller, body.destination_key)
      const embedder = await backend.embedders.get(
        embeddingModelForRequest(ctx, caller, body.embeddings, query.embeddings),
      )
      const memories = await transferCandidates(backend, caller, embedder)

      if (resolveDryRun(body.dry_run, query.dry_run)) {
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
      const { operation } = claim
      await acceptCopy(backend, caller, {
        operation,
        kind: 'transfer',
        destination,
        model:
          requestedEmbeddingModel(ctx, body.embeddings, query.embeddings) ??
          destination.embeddings ??
          embedder.model,
        ids: memories.map(({ id }) => id),
        graftQuery: null,
        awaited: !prefersAsync(ctx),
      })
      await sendOperationOutcome(ctx, backend, caller, operation)
    },
  })
}
