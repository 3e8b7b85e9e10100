import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { loadedOrg, orgAdmin } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import type { InstructionsDraft } from '#api/contract/generated/types.ts'
import { presentOrgUsage, presentPipeline, presentInstructions } from '#api/present/org.ts'
import { parseExclusiveEnd, parseStart } from '#shared/core/dates.ts'
import { reversedSpan } from '#shared/core/refusals.ts'
import { listOrgUsage } from '#shared/org/base/org-usage.postgres.ts'
import { readPipeline, redrivePipeline } from '#shared/org/admin/pipeline-status.ts'
import { changeInstructions, type InstructionsChange } from '#shared/org/admin/instructions.ts'
import { readInstructions } from '#shared/org/base/org-policy.postgres.ts'
import { requireOrganization } from '#shared/org/base/policy-change.ts'

const defaultPeriodMs = 30 * 24 * 3600 * 1000

/** Which facts an organization wants extracted, what the extraction costs, and a second chance for turns it gave up. */
export function extraction(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'GET /v1/orgs/:orgId/usage',
    auth: loadedOrg,
    async handle({ org, query }, ctx) {
      const end = query.end === undefined ? backend.now() : parseExclusiveEnd(query.end) - 1
      const start = query.start === undefined ? end - defaultPeriodMs : parseStart(query.start)
      if (start > end) throw reversedSpan('start', 'end', 'Swap the two')
      const period = { from: new Date(start), to: new Date(end) }
      const rows = await listOrgUsage(backend.postgres.query, org.id, period)
      ctx.body = {
        org_id: org.id,
        period: { start: period.from.toISOString(), end: period.to.toISOString() },
        ...presentOrgUsage(backend.prices, rows),
      }
    },
  })

  endpoint(router, backend, {
    route: 'POST /v1/orgs/:orgId/pipeline/redrive',
    auth: loadedOrg,
    async handle({ org }, ctx) {
      const redriven = await redrivePipeline(backend, org.id)
      const status = await readPipeline(backend.postgres.query, org.id)
      ctx.body = { org_id: org.id, redriven, pipeline: presentPipeline(status) }
    },
  })

  endpoint(router, backend, {
    route: 'PUT /v1/orgs/:orgId/instructions',
    auth: orgAdmin,
    async current({ orgAdmin }) {
      const { query } = backend.postgres
      const { id } = await requireOrganization(query, orgAdmin.admin, orgAdmin.org)
      return presentInstructions(await readInstructions(query, id))
    },
    async handle({ orgAdmin, body }, ctx) {
      const saved = await changeInstructions(backend, orgAdmin, toInstructionsChange(body))
      ctx.body = presentInstructions(saved)
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/orgs/:orgId/instructions',
    auth: loadedOrg,
    async handle({ org }, ctx) {
      ctx.body = presentInstructions(await readInstructions(backend.postgres.query, org.id))
    },
  })
}

export const toInstructionsChange = (draft: InstructionsDraft): InstructionsChange => ({
  defaultOn: draft.default_on,
  custom: draft.custom,
  antiRules: draft.anti_rules,
  execRules: draft.exec_rules,
})
