import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { orgAdmin } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentInstructions } from '#api/present/org.ts'
import { changeInstructions, getInstructions } from '#shared/org/admin/instructions.ts'

/** Which facts of its members' messages an organization wants extracted. */
export function instructions(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'PUT /v1/orgs/:orgId/instructions',
    auth: orgAdmin,
    async handle({ orgAdmin, body }, ctx) {
      const saved = await changeInstructions(backend, orgAdmin, {
        defaultOn: body.default_on,
        custom: body.custom,
        antiRules: body.anti_rules,
        execRules: body.exec_rules,
      })
      ctx.body = presentInstructions(saved)
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/orgs/:orgId/instructions',
    auth: orgAdmin,
    async handle({ orgAdmin }, ctx) {
      ctx.body = presentInstructions(await getInstructions(backend, orgAdmin))
    },
  })
}
