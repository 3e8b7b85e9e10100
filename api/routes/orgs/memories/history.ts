import type { Router } from '@koa/router'
import { orgOf } from '#api/edge/admin.ts'
import { RestoreMemoryBody } from '#api/contract/contract.ts'
import { operationOf } from '#api/edge/idempotency.ts'
import { bandsOf, presentRevision, presentShared } from '#api/present/shared-memory.ts'
import { bodyOf } from '#api/edge/request.ts'
import { requireAccountBalance } from '#shared/billing/requirements.ts'
import type { Backend } from '#shared/backend.ts'
import { historyOf, restoreShared } from '#shared/org/history.ts'
import { placeOf, sharedIdOf } from '#shared/org/parse-params.ts'

/** What a shared memory said before, and the way back to it. */
export function memoryHistory(router: Router, backend: Backend): void {
  const path = '/v1/orgs/:orgId/memories/:memId'
  const { postgres } = backend

  router.get(`${path}/history`, async ctx => {
    const { org } = await orgOf(ctx, backend)
    const id = sharedIdOf(ctx.params.memId)
    const revisions = await historyOf(backend, { org: org.id }, id)
    ctx.body = {
      org_id: org.id,
      mem_id: id,
      count: revisions.length,
      revisions: revisions.map(presentRevision),
    }
  })

  router.post(`${path}/restore`, async ctx => {
    const { admin, org } = await orgOf(ctx, backend)
    const id = sharedIdOf(ctx.params.memId)
    const { event_id: event } = await bodyOf(ctx, RestoreMemoryBody)
    await requireAccountBalance(postgres.query, org.account)
    const by = { operation: operationOf(ctx), actor: admin.email }
    const memory = await restoreShared(backend, placeOf(org), { ...by, id, event })
    ctx.body = presentShared(memory, await bandsOf(postgres.query, org.id))
  })
}
