import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { sendOperationOutcome, prefersAsync } from '#api/edge/operation-response.ts'
import { requireQueueCapacity } from '#shared/billing/admission-checks.ts'
import { requireStorePermission } from '#shared/access/caller.ts'
import { acceptReembedding } from '#shared/vault/reembed/reembed.ts'

/** Gives every memory of the vault a vector of another model; until then both models search it. */
export function reembed(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/memory/reembed',
    auth: memoryKey(requireStorePermission),
    admit: ({ caller }) => requireQueueCapacity(caller),
    async handle({ caller, body, claim }, ctx) {
      const { model } = await backend.embedders.get(body.embeddings)

      const { operation } = claim
      await acceptReembedding(backend, caller, {
        operation,
        model,
        dropPrevious: body.drop_previous,
        awaited: !prefersAsync(ctx),
      })
      await sendOperationOutcome(ctx, backend, caller, operation)
    },
  })
}
