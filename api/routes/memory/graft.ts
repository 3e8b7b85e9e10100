import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentCopyCandidate } from '#api/present/copy-candidate.ts'
import { sendOperationOutcome, prefersAsync } from '#api/edge/operation-response.ts'
import { embeddingModelForRequest, requestedEmbeddingModel, resolveDryRun } from '#api/edge/request.ts'
import { requireBalance } from '#shared/billing/admission-checks.ts'
import { acceptCopy, resolveDestination } from '#shared/vault/copy/accept.ts'
import { compareByEventTime, graftCandidates } from '#shared/vault/copy/candidates.ts'
import { requireRetrievePermission } from '#shared/access/caller.ts'

/** Copies what matches the queries to the vault of another key, or previews it. */
export function graft(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/memory/graft',
    auth: memoryKey(requireRetrievePermission),
    admit: ({ caller }) => requireBalance(caller),
    async handle({ caller, body, query, claim }, ctx) {
      const { queries, threshold } = body
      const destination = await resolveDestination(backend, caller, body.destination_key)
      const embedder = await backend.embedders.get(
        embeddingModelForRequest(ctx, caller, body.embeddings, query.embeddings),
      )
      const matches = await graftCandidates(backend, caller, { embedder, queries, threshold })

      if (resolveDryRun(body.dry_run, query.dry_run)) {
        ctx.body = {
          dry_run: true,
          operation: 'graft',
          source_key: caller.maskedKey,
          destination_key: destination.key,
          queries,
          threshold,
          count: matches.length,
          estimated_tokens: matches.reduce((sum, { memory }) => sum + memory.tokens, 0),
          memories: matches.map(({ memory, score }) => ({
            ...presentCopyCandidate(memory),
            score,
          })),
        }
        return
      }
      const { operation } = claim
      const memories = matches.map(({ memory }) => memory).sort(compareByEventTime)
      await acceptCopy(backend, caller, {
        operation,
        kind: 'graft',
        destination,
        model:
          requestedEmbeddingModel(ctx, body.embeddings, query.embeddings) ??
          destination.embeddings ??
          embedder.model,
        ids: memories.map(({ id }) => id),
        graftQuery: { queries, threshold },
        awaited: !prefersAsync(ctx),
      })
      await sendOperationOutcome(ctx, backend, caller, operation)
    },
  })
}
