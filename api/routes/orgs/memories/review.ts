import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { reviewedMemory, reviewedOrg } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { sendInputNotes } from '#api/edge/request.ts'
import { presentPasses } from '#api/present/org-trail.ts'
import { presentSharedMemory } from '#api/present/shared-memory.ts'
import { requireAccountBalance } from '#shared/billing/admission-checks.ts'
import { refusal } from '#shared/core/refusal.ts'
import { findReviewQueue } from '#shared/org/memories/shared-lists.mongo.ts'
import type { SharedMemory } from '#shared/org/memories/shared-memories.mongo.ts'
import {
  findReplacements,
  reviewSharedMemory,
  undoReview,
} from '#shared/org/memories/review-shared-memory.ts'
import { toOrgVault } from '#shared/org/memories/shared-change.ts'
import { normalizeMemberId, parseTags } from '#shared/org/base/normalize.ts'
import { findPassResults } from '#shared/org/base/org-trail.postgres.ts'
import { readSensitivityRules } from '#shared/org/base/sensitivity-rules.ts'

/** Shared memories whose classification is uncertain, and their review by an admin. */
export function review(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'GET /v1/orgs/:orgId/memories/review',
    auth: reviewedOrg,
    async handle({ org, query }, ctx) {
      const { threshold, limit, sort, author, tag } = query
      const filter = {
        threshold,
        limit,
        newestFirst: sort === 'newest',
        author: author && normalizeMemberId(author),
        tag: tag?.normalize('NFC').trim(),
      }
      const queue = await findReviewQueue(backend.mongo, org, filter)
      const ids = queue.map(({ id }) => id)
      const [passes, replaced] = await Promise.all([
        findPassResults(backend.postgres.query, org.id, ids),
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
          pending: memory.pending ?? false,
          replaces: presentReplaced(replaced.get(memory.id)),
          pass: presentPassesOrNone(passes.get(memory.id)),
        })),
      }
    },
  })

  endpoint(router, backend, {
    route: 'POST /v1/orgs/:orgId/memories/:memId/review',
    auth: reviewedMemory,
    async handle({ actor, reviewer, org, id, body, claim, notes }, ctx) {
      const { action, tags, text } = body
      const unused = action === 'approve' ? [] : (['tags', 'text'] as const)
      for (const field of unused) if (body[field] !== undefined) notes.noteIgnored(field)
      if (unused.length > 0) sendInputNotes(ctx, notes)
      if (action === 'approve' && text !== undefined) {
        // A reviewer decides about what members said, and adds nothing of their own.
        if (reviewer.reviews !== null) throw refusal('forbidden', 'reviewerChangesWords')
        await requireAccountBalance(backend.postgres.query, org.account)
      }
      const memory = await reviewSharedMemory(backend, toOrgVault(org), {
        operation: claim.operation,
        actor,
        id,
        action,
        tags: tags && parseTags(tags),
        text,
      })
      ctx.body = {
        action,
        ...presentSharedMemory(memory, await readSensitivityRules(backend.postgres.query, org.id)),
      }
    },
  })

  endpoint(router, backend, {
    route: 'POST /v1/orgs/:orgId/memories/:memId/review/undo',
    auth: reviewedMemory,
    async handle({ actor, org, id, claim }, ctx) {
      const by = { operation: claim.operation, actor }
      const memory = await undoReview(backend, toOrgVault(org), { ...by, id })
      ctx.body = presentSharedMemory(
        memory,
        await readSensitivityRules(backend.postgres.query, org.id),
      )
    },
  })
}

const presentReplaced = (memory: SharedMemory | undefined) =>
  memory ? { mem_id: memory.id, text: memory.text, tags: [...memory.tags] } : null

/** Nulls when the trail was deleted, or an admin added the memory. */
const presentPassesOrNone = (passes: Parameters<typeof presentPasses>[0] | undefined) =>
  passes ? presentPasses(passes) : { pass1: null, pass2: null, pass3: null }
