import type { Router } from '@koa/router'
import { orgOf } from '#api/edge/admin.ts'
import { ReviewMemoryBody, ReviewQueueQuery } from '#api/contract/contract.ts'
import { claimed, operationOf } from '#api/edge/idempotency.ts'
import { presentPasses } from '#api/present/passes.ts'
import { bandsOf, presentShared } from '#api/present/shared-memory.ts'
import { bodyOf, queryOf } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import type { SharedMemory } from '#shared/org/shared-memories.mongo.ts'
import { replacementsOf } from '#shared/org/replacement.ts'
import { reviewQueue as queueOf, reviewShared, undoReview } from '#shared/org/review.ts'
import { placeOf, sharedIdOf, tagsAsked } from '#shared/org/parse-params.ts'
import { passesOf } from '#shared/org/trail.postgres.ts'

/** What the classifier doubted, and what a person says to it. */
export function review(router: Router, backend: Backend): void {
  const path = '/v1/orgs/:orgId/memories'
  const { query } = backend.postgres

  router.get(`${path}/review`, async ctx => {
    const { org } = await orgOf(ctx, backend)
    const { threshold, limit, sort } = queryOf(ctx, ReviewQueueQuery)
    const asked = { threshold, limit, newestFirst: sort === 'newest' }
    const waiting = await queueOf(backend, placeOf(org), asked)
    const ids = waiting.map(({ id }) => id)
    const [passes, replaced] = await Promise.all([
      passesOf(query, org.id, ids),
      replacementsOf(backend, placeOf(org), waiting),
    ])
    ctx.body = {
      org_id: org.id,
      threshold,
      count: waiting.length,
      review: waiting.map(memory => ({
        mem_id: memory.id,
        text: memory.text,
        tags: memory.tags,
        confidence: memory.confidence,
        author: memory.author,
        acquired_at: memory.acquiredAt,
        replaces: replacedShown(replaced.get(memory.id)),
        pass: passesShown(passes.get(memory.id)),
      })),
    }
  })

  router.post(`${path}/:memId/review`, async ctx => {
    const { admin, org } = await orgOf(ctx, backend)
    const id = sharedIdOf(ctx.params.memId)
    const { action, tags } = await bodyOf(ctx, ReviewMemoryBody)
    const memory = await reviewShared(backend, placeOf(org), {
      operation: operationOf(ctx),
      actor: admin.email,
      id,
      action,
      tags: tags && tagsAsked(tags),
    })
    ctx.body = { action, ...presentShared(memory, await bandsOf(query, org.id)) }
  })

  router.post(`${path}/:memId/review/undo`, async ctx => {
    const { admin, org } = await orgOf(ctx, backend)
    const id = sharedIdOf(ctx.params.memId)
    await claimed(ctx, null)
    const by = { operation: operationOf(ctx), actor: admin.email }
    const memory = await undoReview(backend, placeOf(org), { ...by, id })
    ctx.body = presentShared(memory, await bandsOf(query, org.id))
  })
}

const replacedShown = (memory: SharedMemory | undefined) =>
  memory ? { mem_id: memory.id, text: memory.text, tags: [...memory.tags] } : null

/** Nothing where the trail is gone, or an admin seeded it. */
const passesShown = (passes: Parameters<typeof presentPasses>[0] | undefined) =>
  passes ? presentPasses(passes) : { pass1: null, pass2: null, pass3: null }
