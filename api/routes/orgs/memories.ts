import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { conditionOfQuery } from '#api/edge/memory-filter.ts'
import { loadedOrg, sharedMemory } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentPage } from '#api/present/page.ts'
import { presentSharedMemory } from '#api/present/shared-memory.ts'
import { requireAccountBalance } from '#shared/billing/admission-checks.ts'
import { normalizeMemberId, parseTags } from '#shared/org/base/normalize.ts'
import { seedSharedMemories, parseSeeds } from '#shared/org/memories/seed-shared-memories.ts'
import { listSharedMemories } from '#shared/org/memories/list-shared-memories.ts'
import {
  deleteSharedMemoryForGood,
  deleteSharedMemory,
  updateSharedMemory,
} from '#shared/org/memories/write-shared-memories.ts'
import { findSharedMemoryState } from '#shared/org/memories/shared-memories.mongo.ts'
import { toOrgVault } from '#shared/org/memories/shared-change.ts'
import { readSensitivityRules } from '#shared/org/base/sensitivity-rules.ts'

/** The shared memories of an organization, for its admin. */
export function sharedMemories(router: Router, backend: ApiBackend): void {
  const { postgres } = backend

  endpoint(router, backend, {
    route: 'POST /v1/orgs/:orgId/memories',
    auth: loadedOrg,
    async handle({ admin, org, body, claim }, ctx) {
      const seeds = parseSeeds(body)
      await requireAccountBalance(postgres.query, org.account)
      const { added, errors } = await seedSharedMemories(backend, toOrgVault(org), {
        operation: claim.operation,
        actor: admin.email,
        seeds,
      })
      const sensitivities = await readSensitivityRules(postgres.query, org.id)
      ctx.status = 201
      ctx.body = {
        org_id: org.id,
        ...(body.text !== undefined && { mem_id: added[0]!.id }),
        created: added.length,
        failed: errors.length,
        items: added.map(memory => presentSharedMemory(memory, sensitivities)),
        errors,
      }
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/orgs/:orgId/memories',
    auth: loadedOrg,
    async handle({ org, query }, ctx) {
      const { q, tag, author, reviewed, limit, cursor } = query
      const { vault, epoch, revision, space } = org
      const scope = { vault, epoch, revision, space }
      const filter = {
        q,
        tag: tag?.normalize('NFC').trim(),
        author: author && normalizeMemberId(author),
        reviewed,
        condition: conditionOfQuery(query),
        limit,
        cursor,
      }
      const [page, sensitivities] = await Promise.all([
        listSharedMemories(backend, scope, filter),
        readSensitivityRules(postgres.query, org.id),
      ])
      ctx.body = {
        org_id: org.id,
        ...presentPage(page, memory => presentSharedMemory(memory, sensitivities)),
      }
    },
  })

  endpoint(router, backend, {
    route: 'PATCH /v1/orgs/:orgId/memories/:memId',
    auth: sharedMemory,
    async current({ org, id }) {
      const state = await findSharedMemoryState(backend.mongo, org, id)
      const rules = await readSensitivityRules(postgres.query, org.id)
      return state?.memory ? presentSharedMemory(state.memory, rules) : undefined
    },
    async handle({ admin, org, id, body, claim }, ctx) {
      const { text, tags, reviewed } = body
      if (text !== undefined) await requireAccountBalance(postgres.query, org.account)
      const memory = await updateSharedMemory(backend, toOrgVault(org), {
        operation: claim.operation,
        actor: admin.email,
        id,
        ...(text !== undefined && { text, byHand: true }),
        ...(tags && { tags: parseTags(tags) }),
        ...(reviewed !== undefined && { reviewed: Boolean(reviewed) }),
      })
      ctx.body = presentSharedMemory(memory, await readSensitivityRules(postgres.query, org.id))
    },
  })

  endpoint(router, backend, {
    route: 'DELETE /v1/orgs/:orgId/memories/:memId',
    auth: sharedMemory,
    async handle({ admin, org, id, query, claim }, ctx) {
      const removal = { operation: claim.operation, actor: admin.email, id }
      const remove = query.permanent ? deleteSharedMemoryForGood : deleteSharedMemory
      await remove(backend, toOrgVault(org), removal)
      ctx.body = { deleted: true, id }
    },
  })
}
