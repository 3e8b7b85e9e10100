import type { Router } from '@koa/router'
import { withAdminActor, currentAdmin, requireAdminOrg } from '#api/edge/admin-auth.ts'
import { ChangeOrgBody, CreateOrgBody } from '#api/contract/contract.ts'
import { claimIdempotencyKey, operationId } from '#api/edge/idempotency.ts'
import { presentOrg } from '#api/present/org.ts'
import { parseBody } from '#api/edge/request.ts'
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
    const admin = currentAdmin(ctx)
    const body = await parseBody(ctx, CreateOrgBody)
    const actorBackend = withAdminActor(ctx, backend)
    const { org, key } = await createOrganization(actorBackend, admin, operationId(ctx), {
      name: body.name,
      processorProvider: body.processor_provider,
      extractModel: body.extract_model,
      classifyModel: body.classify_model,
    })
    ctx.status = 201
    ctx.body = { ...presentOrg(org), org_key: key }
  })

  router.get('/v1/orgs', async ctx => {
    const { account } = currentAdmin(ctx)
    const rows = await listOrgs(backend.postgres.query, account)
    ctx.body = { orgs: rows.map(presentOrg) }
  })

  router.get('/v1/orgs/:orgId', async ctx => {
    const { org } = await requireAdminOrg(ctx, backend)
    ctx.body = presentOrg(org)
  })

  router.patch('/v1/orgs/:orgId', async ctx => {
    const admin = currentAdmin(ctx)
    const body = await parseBody(ctx, ChangeOrgBody)
    const org = await changeOrganization(backend, admin, ctx.params.orgId ?? '', {
      name: body.name,
      processorProvider: body.processor_provider,
      extractModel: body.extract_model,
      classifyModel: body.classify_model,
    })
    ctx.body = presentOrg(org)
  })

  router.delete('/v1/orgs/:orgId', async ctx => {
    const admin = currentAdmin(ctx)
    const id = ctx.params.orgId ?? ''
    await claimIdempotencyKey(ctx, null)
    await removeOrganization(withAdminActor(ctx, backend), admin, id, operationId(ctx))
    ctx.body = { deleted: true, id }
  })
}
