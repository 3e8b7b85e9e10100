import type { Router } from '@koa/router'
import type { OrgReviewer } from '#api/contract/generated/types.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { orgAdmin } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { createReviewer, listOrgReviewers, removeReviewer } from '#shared/org/admin/reviewers.ts'
import type { ReviewerRow } from '#shared/org/base/reviewers.postgres.ts'

/** Reviewers of an organization: they decide about its queue and do nothing else. */
export function reviewers(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/orgs/:orgId/reviewers',
    auth: orgAdmin,
    async handle({ orgAdmin, body, claim }, ctx) {
      const request = { email: body.email, operation: claim.operation }
      const { reviewer, key } = await createReviewer(backend, orgAdmin, request)
      ctx.status = 201
      ctx.body = { ...presentReviewer(reviewer), reviewer_key: key }
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/orgs/:orgId/reviewers',
    auth: orgAdmin,
    async handle({ orgAdmin }, ctx) {
      const rows = await listOrgReviewers(backend, orgAdmin)
      ctx.body = { reviewers: rows.map(presentReviewer) }
    },
  })

  endpoint(router, backend, {
    route: 'DELETE /v1/orgs/:orgId/reviewers/:reviewerId',
    auth: orgAdmin,
    async handle({ orgAdmin, params, claim }, ctx) {
      const id = params.reviewerId
      await removeReviewer(backend, orgAdmin, id, claim.operation)
      ctx.body = { deleted: true, id }
    },
  })
}

const presentReviewer = ({
  id,
  email,
  masked,
  createdBy,
  createdAt,
}: ReviewerRow): OrgReviewer => ({
  reviewer_id: id,
  email,
  masked_key: masked,
  created_by: createdBy,
  created_at: createdAt.getTime(),
})
