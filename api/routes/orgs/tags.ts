import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { orgAdmin } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentTag } from '#api/present/org.ts'
import { changeTag, createTag, removeTag, listOrgTags } from '#shared/org/tag.ts'

/** Tags: the labels that the classifier gives to shared memories. */
export function tags(router: Router, backend: ApiBackend): void {
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
    auth: orgAdmin,
    async handle({ orgAdmin }, ctx) {
      const rows = await listOrgTags(backend, orgAdmin)
      ctx.body = { tags: rows.map(presentTag) }
    },
  })

  endpoint(router, backend, {
    route: 'PATCH /v1/orgs/:orgId/tags/:tagId',
    auth: orgAdmin,
    async handle({ orgAdmin, params, body, claim }, ctx) {
      const change = { ...body, operation: claim.operation }
      ctx.body = presentTag(await changeTag(backend, orgAdmin, params.tagId, change))
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
}
