import type { Router } from '@koa/router'
import { requireAdminOrg } from '#api/edge/admin-auth.ts'
import { RestoreMemoryBody } from '#api/contract/contract.ts'
import { operationId } from '#api/edge/idempotency.ts'
import {
  sensitivityLookup,
  presentRevision,
  presentSharedMemory,
} from '#api/present/shared-memory.ts'
import { parseBody } from '#api/edge/request.ts'
import { requireAccountBalance } from '#shared/billing/admission-checks.ts'
import type { Backend } from '#shared/backend.ts'
import { readHistory, restoreSharedMemory } from '#shared/org/restore-shared-memory.ts'
import { toOrgVault, parseSharedMemoryId } from '#shared/org/parse-params.ts'

/** What a shared memory said before, and the way back to it. */
export function memoryHistory(router: Router, backend: Backend): void {
  const path = '/v1/orgs/:orgId/memories/:memId'
  const { postgres } = backend

  router.get(`${path}/history`, async ctx => {
    const { org } = await requireAdminOrg(ctx, backend)
    const id = parseSharedMemoryId(ctx.params.memId)
    const revisions = await readHistory(backend, { org: org.id }, id)
    ctx.body = {
      org_id: org.id,
      mem_id: id,
      count: revisions.length,
      revisions: revisions.map(presentRevision),
    }
  })

  router.post(`${path}/restore`, async ctx => {
    const { admin, org } = await requireAdminOrg(ctx, backend)
    const id = parseSharedMemoryId(ctx.params.memId)
    const { event_id: event } = await parseBody(ctx, RestoreMemoryBody)
    await requireAccountBalance(postgres.query, org.account)
    const by = { operation: operationId(ctx), actor: admin.email }
    const memory = await restoreSharedMemory(backend, toOrgVault(org), { ...by, id, event })
    ctx.body = presentSharedMemory(memory, await sensitivityLookup(postgres.query, org.id))
  })
}
