import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { owner, orgAdmin } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentAccountPolicy, presentPolicy } from '#api/present/policy.ts'
import { changeAccountPolicy, readAccountPolicy } from '#shared/accounts/policy.ts'
import { changeOrgPolicy, readOrgPolicy } from '#shared/org/base/redaction.ts'

/** What an account or one of its organizations redacts, and how long an account keeps memories and traces. */
export function policy(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'GET /v1/account/policy',
    auth: owner(),
    async handle({ account }, ctx) {
      ctx.body = presentAccountPolicy(await readAccountPolicy(backend.postgres.query, account))
    },
  })

  endpoint(router, backend, {
    route: 'PUT /v1/account/policy',
    auth: owner(),
    async handle({ account, actor, body, claim }, ctx) {
      const { redaction, retention_days: retentionDays, create_users: createUsers } = body
      const traces = { mode: body.traces, days: body.trace_days }
      const { verbatim, store_response: storeResponse } = body
      const storage = {
        verbatim,
        responseWithInput: storeResponse && storeResponse === 'with_input',
      }
      const { operation } = claim
      const decision = { operation, redaction, retentionDays, createUsers, traces, storage }
      const hasFollowUp = await changeAccountPolicy(backend, { account, actor }, decision)
      ctx.body = {
        ...presentAccountPolicy(await readAccountPolicy(backend.postgres.query, account)),
        ...(hasFollowUp && { operation_id: decision.operation }),
      }
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/orgs/:orgId/policy',
    auth: orgAdmin,
    async handle({ orgAdmin }, ctx) {
      ctx.body = presentPolicy(await readOrgPolicy(backend, orgAdmin))
    },
  })

  endpoint(router, backend, {
    route: 'PUT /v1/orgs/:orgId/policy',
    auth: orgAdmin,
    async handle({ orgAdmin, body }, ctx) {
      const { redaction } = body
      await changeOrgPolicy(backend, orgAdmin, redaction)
      ctx.body = presentPolicy(await readOrgPolicy(backend, orgAdmin))
    },
  })
}
