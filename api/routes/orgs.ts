import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { admin, loadedOrg, reviewer } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import type { ChangeOrgBody } from '#api/contract/generated/types.ts'
import { presentOverview, presentPipeline, presentOrg } from '#api/present/org.ts'
import { parseStart } from '#shared/core/dates.ts'
import {
  changeOrganization,
  createOrganization,
  removeOrganization,
} from '#shared/org/admin/organization.ts'
import { readOrgOverview } from '#shared/org/admin/overview.ts'
import { pipelineNotices, providerNotice, readPipeline } from '#shared/org/admin/pipeline-status.ts'
import { listOrgs, type OrgRow } from '#shared/org/base/orgs.postgres.ts'
import { requireOrganization } from '#shared/org/base/policy-change.ts'

const dayMs = 24 * 3600 * 1000
const overviewSpanMs = 90 * dayMs
/** Ten years of days, by the contract. */
const overviewDaysMax = 3_660

/** The organizations of an admin. */
export function orgs(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/orgs',
    auth: admin,
    async handle({ admin, body, claim }, ctx) {
      const { org, key } = await createOrganization(
        backend,
        admin,
        claim.operation,
        toOrgFields(body),
      )
      ctx.status = 201
      const notice = await providerNotice(backend, org)
      ctx.body = { ...presentOrg(org), org_key: key, notice }
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/orgs',
    auth: reviewer,
    async handle({ account, reviewer: { reviews } }, ctx) {
      const rows = await listOrgs(backend.postgres.query, account, reviews)
      const access = reviews === null ? 'admin' : 'reviewer'
      // A reviewer reads no settings.
      const notices = reviews === null ? await pipelineNotices(backend, account, rows) : null
      ctx.body = {
        orgs: rows.map(org => {
          return { ...presentOrg(org), access, notice: notices?.get(org.id) ?? null }
        }),
      }
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/orgs/:orgId',
    auth: loadedOrg,
    async handle({ org }, ctx) {
      ctx.body = await readSettings(org)
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/orgs/:orgId/overview',
    auth: loadedOrg,
    async handle({ org, query }, ctx) {
      const now = backend.now()
      const since = query.since === undefined ? now - overviewSpanMs : parseStart(query.since)
      const from = Math.floor(since / dayMs) * dayMs
      const overview = await readOrgOverview(backend, org, { from, now, tagsMax: query.tags })
      ctx.body = {
        org_id: org.id,
        since: from,
        ...presentOverview(backend.prices, overview, overviewDaysMax),
      }
    },
  })

  endpoint(router, backend, {
    route: 'PATCH /v1/orgs/:orgId',
    auth: admin,
    current: async ({ admin, params }) =>
      readSettings(await requireOrganization(backend.postgres.query, admin, params.orgId)),
    async handle({ admin, params, body }, ctx) {
      const { pipeline_paused: paused, daily_token_budget: dailyTokenBudget, ...fields } = body
      const org = await changeOrganization(backend, admin, params.orgId, {
        ...toOrgFields({ name: undefined, ...fields }),
        pipeline: { paused, dailyTokenBudget },
      })
      ctx.body = await readSettings(org)
    },
  })

  endpoint(router, backend, {
    route: 'DELETE /v1/orgs/:orgId',
    auth: admin,
    async handle({ admin, params, claim }, ctx) {
      const id = params.orgId
      await removeOrganization(backend, admin, id, claim.operation)
      ctx.body = { deleted: true, id }
    },
  })

  async function readSettings(org: OrgRow) {
    const pipeline = await readPipeline(backend.postgres.query, org.id)
    return { ...presentOrg(org), pipeline: presentPipeline(pipeline) }
  }
}

const toOrgFields = <Name>(body: Omit<ChangeOrgBody, 'name'> & { name: Name }) => ({
  name: body.name,
  processorProvider: body.processor_provider,
  extractModel: body.extract_model,
  classifyModel: body.classify_model,
})
