import type { Router } from '@koa/router'
import { CommitBody } from '#api/contract/contract.ts'
import { operationOf } from '#api/edge/idempotency.ts'
import { presentDebt } from '#api/present/debt.ts'
import { bodyOf, callerOf } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { requireStore } from '#shared/access/caller.ts'
import { findKey } from '#shared/access/keys.postgres.ts'
import { commitBatch } from '#shared/vault/consolidate/commit.ts'
import { debtOf } from '#shared/vault/consolidate/debt.ts'

/** Turns a lent batch into reflections; sent again it answers what was created the first time. */
export function commit(router: Router, backend: Backend): void {
  router.post('/v1/memory/consolidate/commit', async ctx => {
    const caller = await callerOf(ctx, backend)
    requireStore(caller)
    const { batch_id: batch, entries } = await bodyOf(ctx, CommitBody)

    const committed = await commitBatch(backend, caller, {
      operation: operationOf(ctx),
      batch,
      entries,
    })
    // The debt has moved since the key was read.
    const row = (await findKey(backend.postgres.query, caller.keyHash)) ?? caller.row

    ctx.body = {
      batch_id: batch,
      committed: true,
      already_committed: committed.alreadyCommitted,
      tier: committed.tier,
      created: committed.created,
      sources_consolidated: committed.sources,
      reflection: presentDebt(debtOf(row)),
    }
  })
}
