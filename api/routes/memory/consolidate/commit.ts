import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { memoryKey } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentDebt } from '#api/present/debt.ts'
import { requireStorePermission } from '#shared/access/caller.ts'
import { findKey } from '#shared/access/key-row.postgres.ts'
import { commitBatch } from '#shared/vault/consolidate/commit.ts'
import { reflectionDebt } from '#shared/vault/consolidate/debt.ts'

/** Stores the reflections on a batch; repeated, it answers with what was created the first time. */
export function commit(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/memory/consolidate/commit',
    auth: memoryKey(requireStorePermission),
    async handle({ caller, body, claim }, ctx) {
      const { batch_id: batch, entries } = body

      const committed = await commitBatch(backend, caller, {
        operation: claim.operation,
        batch,
        entries,
      })
      // The debt has changed since the key was read.
      const row = (await findKey(backend.postgres.query, caller.keyHash)) ?? caller.keyRow

      ctx.body = {
        // As it was issued, whichever case a client writes UUIDs in.
        batch_id: batch.toLowerCase(),
        committed: true,
        already_committed: committed.alreadyCommitted,
        tier: committed.tier,
        created: committed.created,
        sources_consolidated: committed.sources,
        reflection: presentDebt(reflectionDebt(row)),
      }
    },
  })
}
