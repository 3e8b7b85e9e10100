import type { Router } from '@koa/router'
import { CommitBody } from '#api/contract/contract.ts'
import { operationId } from '#api/edge/idempotency.ts'
import { presentDebt } from '#api/present/debt.ts'
import { parseBody, authenticateRequest } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { requireStorePermission } from '#shared/access/caller.ts'
import { findKey } from '#shared/access/memory-keys.postgres.ts'
import { commitBatch } from '#shared/vault/consolidate/commit.ts'
import { reflectionDebt } from '#shared/vault/consolidate/debt.ts'

/** Turns a lent batch into reflections; sent again it answers what was created the first time. */
export function commit(router: Router, backend: Backend): void {
  router.post('/v1/memory/consolidate/commit', async ctx => {
    const caller = await authenticateRequest(ctx, backend)
    requireStorePermission(caller)
    const { batch_id: batch, entries } = await parseBody(ctx, CommitBody)

    const committed = await commitBatch(backend, caller, {
      operation: operationId(ctx),
      batch,
      entries,
    })
    // The debt has moved since the key was read.
    const row = (await findKey(backend.postgres.query, caller.keyHash)) ?? caller.keyRow

    ctx.body = {
      batch_id: batch,
      committed: true,
      already_committed: committed.alreadyCommitted,
      tier: committed.tier,
      created: committed.created,
      sources_consolidated: committed.sources,
      reflection: presentDebt(reflectionDebt(row)),
    }
  })
}
