import type { Router } from '@koa/router'
import { requireAdminOrg } from '#api/edge/admin-auth.ts'
import { ReviewMemoryBody, ReviewQueueQuery } from '#api/contract/contract.ts'
import { claimIdempotencyKey, operationId } from '#api/edge/idempotency.ts'
import { presentPasses } from '#api/present/org-trail.ts'
import { sensitivityLookup, presentSharedMemory } from '#api/present/shared-memory.ts'
import { parseBody, parseQuery } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import type { SharedMemory } from '#shared/org/shared-memories.mongo.ts'
import { findReplacements } from '#shared/org/superseded-memory.ts'
import {
  listReviewQueue as queueOf,
  reviewSharedMemory,
  undoReview,
} from '#shared/org/review-shared-memory.ts'
import { toOrgVault, parseSharedMemoryId, parseTags } from '#shared/org/parse-params.ts'
import { findPassResults } from '#shared/org/org-trail.postgres.ts'

/** What the classifier doubted, and what a person says to it. */
export function review(router: Router, backend: Backend): void {
  const path = '/v1/orgs/:orgId/memories'
  const { query } = backend.postgres

  router.get(`${path}/review`, async ctx => {
    const { org } = await requireAdminOrg(ctx, backend)
    const { threshold, limit, sort } = parseQuery(ctx, ReviewQueueQuery)
    const filter = { threshold, limit, newestFirst: sort === 'newest' }
    const queue = await queueOf(backend, toOrgVault(org), filter)
    const ids = queue.map(({ id }) => id)
    const [passes, replaced] = await Promise.all([
      findPassResults(query, org.id, ids),
      findReplacements(backend, toOrgVault(org), queue),
    ])
    ctx.body = {
      org_id: org.id,
      threshold,
      count: queue.length,
      review: queue.map(memory => ({
        mem_id: memory.id,
        text: memory.text,
        tags: memory.tags,
        confidence: memory.confidence,
        author: memory.author,
        acquired_at: memory.acquiredAt,
        replaces: presentReplaced(replaced.get(memory.id)),
        pass: presentPassesOrNone(passes.get(memory.id)),
      })),
    }
  })

  router.post(`${path}/:memId/review`, async ctx => {
    const { admin, org } = await requireAdminOrg(ctx, backend)
    const id = parseSharedMemoryId(ctx.params.memId)
    const { action, tags } = await parseBody(ctx, ReviewMemoryBody)
    const memory = await reviewSharedMemory(backend, toOrgVault(org), {
      operation: operationId(ctx),
      actor: admin.email,
      id,
      action,
      tags: tags && parseTags(tags),
    })
    ctx.body = { action, ...presentSharedMemory(memory, await sensitivityLookup(query, org.id)) }
  })

  router.post(`${path}/:memId/review/undo`, async ctx => {
    const { admin, org } = await requireAdminOrg(ctx, backend)
    const id = parseSharedMemoryId(ctx.params.memId)
    await claimIdempotencyKey(ctx, null)
    const by = { operation: operationId(ctx), actor: admin.email }
    const memory = await undoReview(backend, toOrgVault(org), { ...by, id })
    ctx.body = presentSharedMemory(memory, await sensitivityLookup(query, org.id))
  })
}

const presentReplaced = (memory: SharedMemory | undefined) =>
  memory ? { mem_id: memory.id, text: memory.text, tags: [...memory.tags] } : null

/** Nothing where the trail is gone, or an admin seeded it. */
const presentPassesOrNone = (passes: Parameters<typeof presentPasses>[0] | undefined) =>
  passes ? presentPasses(passes) : { pass1: null, pass2: null, pass3: null }
