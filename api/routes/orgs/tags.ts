import type { Router } from '@koa/router'
import { actingAdmin } from '#api/edge/admin.ts'
import { ChangeTagBody, CreateTagBody } from '#api/contract/contract.ts'
import { claimed, operationOf } from '#api/edge/idempotency.ts'
import { presentTag } from '#api/present/org.ts'
import { bodyOf } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import { changeTag, createTag, removeTag, tagsOfOrg } from '#shared/org/tag.ts'

/** Tags: what the classifier asks of a shared memory. */
export function tags(router: Router, backend: Backend): void {
  const path = '/v1/orgs/:orgId/tags'

  router.post(path, async ctx => {
    const acting = { admin: actingAdmin(ctx), org: ctx.params.orgId ?? '' }
    const body = await bodyOf(ctx, CreateTagBody)
    const tag = await createTag(backend, acting, operationOf(ctx), body)
    ctx.status = 201
    ctx.body = presentTag(tag)
  })

  router.get(path, async ctx => {
    const acting = { admin: actingAdmin(ctx), org: ctx.params.orgId ?? '' }
    const rows = await tagsOfOrg(backend, acting)
    ctx.body = { tags: rows.map(presentTag) }
  })

  router.patch(`${path}/:tagId`, async ctx => {
    const acting = { admin: actingAdmin(ctx), org: ctx.params.orgId ?? '' }
    const body = await bodyOf(ctx, ChangeTagBody)
    const change = { ...body, operation: operationOf(ctx) }
    ctx.body = presentTag(await changeTag(backend, acting, ctx.params.tagId ?? '', change))
  })

  router.delete(`${path}/:tagId`, async ctx => {
    const acting = { admin: actingAdmin(ctx), org: ctx.params.orgId ?? '' }
    const id = ctx.params.tagId ?? ''
    await claimed(ctx, null)
    await removeTag(backend, acting, id, operationOf(ctx))
    ctx.body = { deleted: true, id }
  })
}
