import type { Router } from '@koa/router'
import { actedByAdmin, actingAdmin, orgOf } from '#api/edge/admin.ts'
import { ChangeOrgBody, CreateOrgBody } from '#api/contract/contract.ts'
import { claimed, operationOf } from '#api/edge/idempotency.ts'
import { presentOrg } from '#api/present/org.ts'
import { bodyOf } from '#api/edge/request.ts'
import type { Backend } from '#shared/backend.ts'
import {
  changeOrganization,
  createOrganization,
  removeOrganization,
} from '#shared/org/organization.ts'
import { listOrgs } from '#shared/org/orgs.postgres.ts'

/** Organizations of the admin who asks. */
export function orgs(router: Router, backend: Backend): void {
  router.post('/v1/orgs', async ctx => {
    const admin = actingAdmin(ctx)
    const body = await bodyOf(ctx, CreateOrgBody)
    const acted = actedByAdmin(ctx, backend)
    const { org, key } = await createOrganization(acted, admin, operationOf(ctx), {
      name: body.name,
      processorProvider: body.processor_provider,
      extractModel: body.extract_model,
      classifyModel: body.classify_model,
    })
    ctx.status = 201
    ctx.body = { ...presentOrg(org), org_key: key }
  })

  router.get('/v1/orgs', async ctx => {
    const { account } = actingAdmin(ctx)
    const rows = await listOrgs(backend.postgres.query, account)
    ctx.body = { orgs: rows.map(presentOrg) }
  })

  router.get('/v1/orgs/:orgId', async ctx => {
    const { org } = await orgOf(ctx, backend)
    ctx.body = presentOrg(org)
  })

  router.patch('/v1/orgs/:orgId', async ctx => {
    const admin = actingAdmin(ctx)
    const body = await bodyOf(ctx, ChangeOrgBody)
    const org = await changeOrganization(backend, admin, ctx.params.orgId ?? '', {
      name: body.name,
      processorProvider: body.processor_provider,
      extractModel: body.extract_model,
      classifyModel: body.classify_model,
    })
    ctx.body = presentOrg(org)
  })

  router.delete('/v1/orgs/:orgId', async ctx => {
    const admin = actingAdmin(ctx)
    const id = ctx.params.orgId ?? ''
    await claimed(ctx, null)
    await removeOrganization(actedByAdmin(ctx, backend), admin, id, operationOf(ctx))
    ctx.body = { deleted: true, id }
  })
}
