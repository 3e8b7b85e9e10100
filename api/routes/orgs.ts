import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { orgsAdmin, loadedOrg } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentOrg } from '#api/present/org.ts'
import {
  changeOrganization,
  createOrganization,
  removeOrganization,
} from '#shared/org/organization.ts'
import { listOrgs } from '#shared/org/orgs.postgres.ts'

/** The organizations of an admin. */
export function orgs(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/orgs',
    auth: orgsAdmin,
    async handle({ admin, body, claim }, ctx) {
      const { org, key } = await createOrganization(backend, admin, claim.operation, {
        name: body.name,
        processorProvider: body.processor_provider,
        extractModel: body.extract_model,
        classifyModel: body.classify_model,
      })
      ctx.status = 201
      ctx.body = { ...presentOrg(org), org_key: key }
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/orgs',
    auth: orgsAdmin,
    async handle({ account }, ctx) {
      const rows = await listOrgs(backend.postgres.query, account)
      ctx.body = { orgs: rows.map(presentOrg) }
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/orgs/:orgId',
    auth: loadedOrg,
    async handle({ org }, ctx) {
      ctx.body = presentOrg(org)
    },
  })

  endpoint(router, backend, {
    route: 'PATCH /v1/orgs/:orgId',
    auth: orgsAdmin,
    async handle({ admin, params, body }, ctx) {
      const org = await changeOrganization(backend, admin, params.orgId, {
        name: body.name,
        processorProvider: body.processor_provider,
        extractModel: body.extract_model,
        classifyModel: body.classify_model,
      })
      ctx.body = presentOrg(org)
    },
  })

  endpoint(router, backend, {
    route: 'DELETE /v1/orgs/:orgId',
    auth: orgsAdmin,
    async handle({ admin, params, claim }, ctx) {
      const id = params.orgId
      await removeOrganization(backend, admin, id, claim.operation)
      ctx.body = { deleted: true, id }
    },
  })
}
