import type { Router } from '@koa/router'
import type { TagRun as PresentedRun } from '#api/contract/generated/types.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { loadedOrg, orgAdmin, reviewedOrg } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentTag, presentRole } from '#api/present/org.ts'
import { changeTag, createTag, removeTag } from '#shared/org/admin/tag.ts'
import { estimateTagRun, readTagRun, startTagRun } from '#shared/org/pipeline/tag-run.ts'
import type { TagRun } from '#shared/org/pipeline/tag-runs.postgres.ts'
import { findTag, listTags } from '#shared/org/base/tags.postgres.ts'
import { changeRole, createRole, removeRole } from '#shared/org/admin/role.ts'
import { roleRows } from '#shared/org/base/roles.postgres.ts'
import { requireOrganization } from '#shared/org/base/policy-change.ts'

/** Tags that the classifier gives to shared memories, and roles that allow them. */
export function rolesAndTags(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/orgs/:orgId/tags',
    auth: orgAdmin,
    async handle({ orgAdmin, body, claim }, ctx) {
      const tag = await createTag(backend, orgAdmin, claim.operation, body)
      ctx.status = 201
      ctx.body = presentTag(tag)
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/orgs/:orgId/tags',
    auth: reviewedOrg,
    async handle({ org }, ctx) {
      const rows = await listTags(backend.postgres.query, org.id)
      ctx.body = { tags: rows.map(presentTag) }
    },
  })

  endpoint(router, backend, {
    route: 'PATCH /v1/orgs/:orgId/tags/:tagId',
    auth: orgAdmin,
    async current({ orgAdmin, params }) {
      const { query } = backend.postgres
      const { id } = await requireOrganization(query, orgAdmin.admin, orgAdmin.org)
      const tag = await findTag(query, id, params.tagId)
      return tag && presentTag(tag)
    },
    async handle({ orgAdmin, params, body, claim }, ctx) {
      const change = { ...body, operation: claim.operation }
      ctx.body = presentTag(await changeTag(backend, orgAdmin, params.tagId, change))
    },
  })

  endpoint(router, backend, {
    route: 'POST /v1/orgs/:orgId/tags/:tagId/apply',
    auth: orgAdmin,
    async handle({ orgAdmin, params, body, claim }, ctx) {
      const request = { ...orgAdmin, tag: params.tagId }
      if (body?.dry_run) {
        const { memories, calls, inputTokens } = await estimateTagRun(backend, request)
        ctx.body = { dry_run: true, memories, calls, input_tokens: inputTokens }
        return
      }
      const run = await startTagRun(backend, request, claim.operation)
      ctx.status = 202
      ctx.body = presentTagRun(run)
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/orgs/:orgId/tags/:tagId/apply',
    auth: orgAdmin,
    async handle({ orgAdmin, params }, ctx) {
      ctx.body = presentTagRun(await readTagRun(backend, { ...orgAdmin, tag: params.tagId }))
    },
  })

  endpoint(router, backend, {
    route: 'DELETE /v1/orgs/:orgId/tags/:tagId',
    auth: orgAdmin,
    async handle({ orgAdmin, params, claim }, ctx) {
      const id = params.tagId
      await removeTag(backend, orgAdmin, id, claim.operation)
      ctx.body = { deleted: true, id }
    },
  })

  endpoint(router, backend, {
    route: 'POST /v1/orgs/:orgId/roles',
    auth: orgAdmin,
    async handle({ orgAdmin, body, claim }, ctx) {
      const { name, allowed_tags: allowedTags = [] } = body
      const role = await createRole(backend, orgAdmin, claim.operation, { name, allowedTags })
      ctx.status = 201
      ctx.body = presentRole(role)
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/orgs/:orgId/roles',
    auth: loadedOrg,
    async handle({ org }, ctx) {
      const rows = await roleRows.list(backend.postgres.query, org.id)
      ctx.body = { roles: rows.map(presentRole) }
    },
  })

  endpoint(router, backend, {
    route: 'PATCH /v1/orgs/:orgId/roles/:roleId',
    auth: orgAdmin,
    async current({ orgAdmin, params }) {
      const { query } = backend.postgres
      const { id } = await requireOrganization(query, orgAdmin.admin, orgAdmin.org)
      const role = await roleRows.find(query, id, params.roleId)
      return role && presentRole(role)
    },
    async handle({ orgAdmin, params, body }, ctx) {
      const { name, allowed_tags: allowedTags } = body
      const role = await changeRole(backend, orgAdmin, params.roleId, { name, allowedTags })
      ctx.body = presentRole(role)
    },
  })

  endpoint(router, backend, {
    route: 'DELETE /v1/orgs/:orgId/roles/:roleId',
    auth: orgAdmin,
    async handle({ orgAdmin, params, claim }, ctx) {
      const id = params.roleId
      await removeRole(backend, orgAdmin, id, claim.operation)
      ctx.body = { deleted: true, id }
    },
  })
}

const presentTagRun = (run: TagRun): PresentedRun => ({
  run_id: run.id,
  tag_id: run.tag,
  state: run.finishedAt ? 'done' : 'running',
  memories: run.memories,
  examined: run.examined,
  tagged: run.tagged,
  doubtful: run.doubtful,
  last_error: run.lastError,
  created_by: run.createdBy,
  created_at: run.createdAt.getTime(),
  finished_at: run.finishedAt?.getTime() ?? null,
})
