import type { Router } from '@koa/router'
import { orgOf } from '#api/edge/admin.ts'
import {
  ChangeSharedMemoryBody,
  ListSharedMemoriesQuery,
  SeedMemoriesBody,
} from '#api/contract/contract.ts'
import { claimed, operationOf } from '#api/edge/idempotency.ts'
import { bandsOf, presentShared } from '#api/present/shared-memory.ts'
import { bodyOf, queryOf } from '#api/edge/request.ts'
import { requireAccountBalance } from '#shared/billing/requirements.ts'
import type { Backend } from '#shared/backend.ts'
import { personOf } from '#shared/org/normalize.ts'
import { seedShared, seedsOf } from '#shared/org/seed.ts'
import { listShared } from '#shared/org/shared-list.ts'
import { deleteShared, updateShared } from '#shared/org/shared-memory.ts'
import { placeOf, sharedIdOf, tagsAsked } from '#shared/org/parse-params.ts'

/** What an organization shares, in the hands of its admin. */
export function sharedMemories(router: Router, backend: Backend): void {
  const path = '/v1/orgs/:orgId/memories'
  const { postgres } = backend

  router.post(path, async ctx => {
    const { admin, org } = await orgOf(ctx, backend)
    const body = await bodyOf(ctx, SeedMemoriesBody)
    const seeds = seedsOf(body)
    await requireAccountBalance(postgres.query, org.account)
    const { added, errors } = await seedShared(backend, placeOf(org), {
      operation: operationOf(ctx),
      actor: admin.email,
      seeds,
    })
    const bands = await bandsOf(postgres.query, org.id)
    ctx.status = 201
    ctx.body = {
      org_id: org.id,
      ...(body.text !== undefined && { mem_id: added[0]!.id }),
      created: added.length,
      failed: errors.length,
      items: added.map(memory => presentShared(memory, bands)),
      errors,
    }
  })

  router.get(path, async ctx => {
    const { org } = await orgOf(ctx, backend)
    const { q, tag, author, reviewed, limit, cursor } = queryOf(ctx, ListSharedMemoriesQuery)
    const { vault, epoch, revision, space } = org
    const scope = { vault, epoch, revision, space }
    const asked = { q, tag, author: author && personOf(author), reviewed, limit, cursor }
    const [{ rows, next }, bands] = await Promise.all([
      listShared(backend, scope, asked),
      bandsOf(postgres.query, org.id),
    ])
    ctx.body = {
      org_id: org.id,
      items: rows.map(memory => presentShared(memory, bands)),
      has_more: next !== null,
      next_cursor: next,
    }
  })

  router.patch(`${path}/:memId`, async ctx => {
    const { admin, org } = await orgOf(ctx, backend)
    const id = sharedIdOf(ctx.params.memId)
    const { text, tags, reviewed } = await bodyOf(ctx, ChangeSharedMemoryBody)
    if (text !== undefined) await requireAccountBalance(postgres.query, org.account)
    const memory = await updateShared(backend, placeOf(org), {
      operation: operationOf(ctx),
      actor: admin.email,
      id,
      ...(text !== undefined && { text, byHand: true }),
      ...(tags && { tags: tagsAsked(tags) }),
      ...(reviewed !== undefined && { reviewed }),
    })
    ctx.body = presentShared(memory, await bandsOf(postgres.query, org.id))
  })

  router.delete(`${path}/:memId`, async ctx => {
    const { admin, org } = await orgOf(ctx, backend)
    const id = sharedIdOf(ctx.params.memId)
    await claimed(ctx, null)
    const by = { operation: operationOf(ctx), actor: admin.email }
    await deleteShared(backend, placeOf(org), { ...by, id })
    ctx.body = { deleted: true, id }
  })
}
