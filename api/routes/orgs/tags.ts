import type { Router } from '@koa/router'
import { currentAdmin } from '#api/edge/admin-auth.ts'
import { ChangeTagBody, CreateTagBody } from '#api/contract/contract.ts'
import { claimIdempotencyKey, operationId } from '#api/edge/idempotency.ts'
import { presentTag } from '#api/present/org.ts'
import { parseBody } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { changeTag, createTag, removeTag, listOrgTags } from '#shared/org/tag.ts'

/** Tags: what the classifier asks of a shared memory. */
export function tags(router: Router, backend: Backend): void {
  const path = '/v1/orgs/:orgId/tags'

  router.post(path, async ctx => {
    const orgAdmin = { admin: currentAdmin(ctx), org: ctx.params.orgId ?? '' }
    const body = await parseBody(ctx, CreateTagBody)
    const tag = await createTag(backend, orgAdmin, operationId(ctx), body)
    ctx.status = 201
    ctx.body = presentTag(tag)
  })

  router.get(path, async ctx => {
    const orgAdmin = { admin: currentAdmin(ctx), org: ctx.params.orgId ?? '' }
    const rows = await listOrgTags(backend, orgAdmin)
    ctx.body = { tags: rows.map(presentTag) }
  })

  router.patch(`${path}/:tagId`, async ctx => {
    const orgAdmin = { admin: currentAdmin(ctx), org: ctx.params.orgId ?? '' }
    const body = await parseBody(ctx, ChangeTagBody)
    const change = { ...body, operation: operationId(ctx) }
    ctx.body = presentTag(await changeTag(backend, orgAdmin, ctx.params.tagId ?? '', change))
  })

  router.delete(`${path}/:tagId`, async ctx => {
    const orgAdmin = { admin: currentAdmin(ctx), org: ctx.params.orgId ?? '' }
    const id = ctx.params.tagId ?? ''
    await claimIdempotencyKey(ctx, null)
    await removeTag(backend, orgAdmin, id, operationId(ctx))
    ctx.body = { deleted: true, id }
  })
}
