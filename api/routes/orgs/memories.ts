import type { Router } from '@koa/router'
import { requireAdminOrg } from '#api/edge/admin-auth.ts'
import {
  ChangeSharedMemoryBody,
  ListSharedMemoriesQuery,
  SeedMemoriesBody,
} from '#api/contract/contract.ts'
import { claimIdempotencyKey, operationId } from '#api/edge/idempotency.ts'
import { sensitivityLookup, presentSharedMemory } from '#api/present/shared-memory.ts'
import { parseBody, parseQuery } from '#api/edge/request.ts'
import { requireAccountBalance } from '#shared/billing/admission-checks.ts'
import type { Backend } from '#shared/backend.ts'
import { normalizeMemberId } from '#shared/org/normalize.ts'
import { seedSharedMemories, parseSeeds } from '#shared/org/seed-shared-memories.ts'
import { listSharedMemories } from '#shared/org/list-shared-memories.ts'
import { deleteSharedMemory, updateSharedMemory } from '#shared/org/write-shared-memories.ts'
import { toOrgVault, parseSharedMemoryId, parseTags } from '#shared/org/parse-params.ts'

/** What an organization shares, in the hands of its admin. */
export function sharedMemories(router: Router, backend: Backend): void {
  const path = '/v1/orgs/:orgId/memories'
  const { postgres } = backend

  router.post(path, async ctx => {
    const { admin, org } = await requireAdminOrg(ctx, backend)
    const body = await parseBody(ctx, SeedMemoriesBody)
    const seeds = parseSeeds(body)
    await requireAccountBalance(postgres.query, org.account)
    const { added, errors } = await seedSharedMemories(backend, toOrgVault(org), {
      operation: operationId(ctx),
      actor: admin.email,
      seeds,
    })
    const sensitivities = await sensitivityLookup(postgres.query, org.id)
    ctx.status = 201
    ctx.body = {
      org_id: org.id,
      ...(body.text !== undefined && { mem_id: added[0]!.id }),
      created: added.length,
      failed: errors.length,
      items: added.map(memory => presentSharedMemory(memory, sensitivities)),
      errors,
    }
  })

  router.get(path, async ctx => {
    const { org } = await requireAdminOrg(ctx, backend)
    const { q, tag, author, reviewed, limit, cursor } = parseQuery(ctx, ListSharedMemoriesQuery)
    const { vault, epoch, revision, space } = org
    const scope = { vault, epoch, revision, space }
    const filter = { q, tag, author: author && normalizeMemberId(author), reviewed, limit, cursor }
    const [{ rows, next }, sensitivities] = await Promise.all([
      listSharedMemories(backend, scope, filter),
      sensitivityLookup(postgres.query, org.id),
    ])
    ctx.body = {
      org_id: org.id,
      items: rows.map(memory => presentSharedMemory(memory, sensitivities)),
      has_more: next !== null,
      next_cursor: next,
    }
  })

  router.patch(`${path}/:memId`, async ctx => {
    const { admin, org } = await requireAdminOrg(ctx, backend)
    const id = parseSharedMemoryId(ctx.params.memId)
    const { text, tags, reviewed } = await parseBody(ctx, ChangeSharedMemoryBody)
    if (text !== undefined) await requireAccountBalance(postgres.query, org.account)
    const memory = await updateSharedMemory(backend, toOrgVault(org), {
      operation: operationId(ctx),
      actor: admin.email,
      id,
      ...(text !== undefined && { text, byHand: true }),
      ...(tags && { tags: parseTags(tags) }),
      ...(reviewed !== undefined && { reviewed }),
    })
    ctx.body = presentSharedMemory(memory, await sensitivityLookup(postgres.query, org.id))
  })

  router.delete(`${path}/:memId`, async ctx => {
    const { admin, org } = await requireAdminOrg(ctx, backend)
    const id = parseSharedMemoryId(ctx.params.memId)
    await claimIdempotencyKey(ctx, null)
    const by = { operation: operationId(ctx), actor: admin.email }
    await deleteSharedMemory(backend, toOrgVault(org), { ...by, id })
    ctx.body = { deleted: true, id }
  })
}
