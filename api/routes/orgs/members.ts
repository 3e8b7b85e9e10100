import type { Router } from '@koa/router'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { loadedOrg, orgAdmin, admin } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import type { ChangeUserBody, OrgReviewer } from '#api/contract/generated/types.ts'
import { presentListedUser, presentUser } from '#api/present/org.ts'
import { mintUserKey, requireMemberKey } from '#shared/org/admin/member-keys.ts'
import {
  changeUser,
  createUser,
  removeUser,
  assignRoles,
  ensureUser,
  requireUser,
} from '#shared/org/admin/user.ts'
import { refusal } from '#shared/core/refusal.ts'
import { createReviewer, removeReviewer } from '#shared/org/admin/reviewers.ts'
import { reviewerRows, type ReviewerRow } from '#shared/org/base/reviewers.postgres.ts'
import { userRows } from '#shared/org/base/users.postgres.ts'
import { requireOrganization } from '#shared/org/base/policy-change.ts'

/** Users with their private vaults and roles, and the reviewers of the queue. */
export function members(router: Router, backend: ApiBackend): void {
  endpoint(router, backend, {
    route: 'POST /v1/orgs/:orgId/users',
    auth: orgAdmin,
    async handle({ orgAdmin, body, claim }, ctx) {
      const user = await createUser(backend, orgAdmin, claim.operation, toUserFields(body))
      ctx.status = 201
      ctx.body = presentUser(user)
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/orgs/:orgId/users',
    auth: loadedOrg,
    async handle({ org }, ctx) {
      const rows = await userRows.list(backend.postgres.query, org.id)
      ctx.body = { users: rows.map(presentListedUser) }
    },
  })

  endpoint(router, backend, {
    route: 'PATCH /v1/orgs/:orgId/users/:userId',
    auth: orgAdmin,
    async current({ orgAdmin, params }) {
      const { query } = backend.postgres
      const { id } = await requireOrganization(query, orgAdmin.admin, orgAdmin.org)
      const user = await userRows.find(query, id, params.userId)
      return user && presentListedUser(user)
    },
    async handle({ orgAdmin, params, body }, ctx) {
      const user = await changeUser(
        backend,
        orgAdmin,
        params.userId,
        toUserFields({ email: undefined, ...body }),
      )
      ctx.body = presentUser(user)
    },
  })

  endpoint(router, backend, {
    route: 'DELETE /v1/orgs/:orgId/users/:userId',
    auth: orgAdmin,
    async handle({ orgAdmin, params, claim }, ctx) {
      const id = params.userId
      await removeUser(backend, orgAdmin, id, claim.operation)
      ctx.body = { deleted: true, id }
    },
  })

  endpoint(router, backend, {
    route: 'POST /v1/orgs/:orgId/users/:userId/memory-key',
    auth: orgAdmin,
    async handle({ orgAdmin, params, body }, ctx) {
      const id = params.userId
      const request = { user: id, reason: body.reason }
      const { key, rotated, createdAt } = await mintUserKey(backend, orgAdmin, request)
      ctx.status = 201
      ctx.body = {
        user_id: id.toLowerCase(),
        key,
        memory_key: key,
        rotated,
        created_at: createdAt.getTime(),
      }
    },
  })

  endpoint(router, backend, {
    route: 'POST /v1/orgs/:orgId/role-assignments',
    auth: admin,
    async handle({ admin, params, body }, ctx) {
      const org = params.orgId
      const { team_member_id: name, key_id: key } = body
      if ((name === undefined) === (key === undefined)) throw refusal('invalid', 'memberOrKey')
      const user = await assignRoles(backend, { admin, org }, body.role_ids, async tx => {
        if (name !== undefined) return ensureUser(tx, { admin, org }, name)
        const { user } = await requireMemberKey(tx.query, backend, org, key ?? '')
        return requireUser(tx.query, org, user)
      })
      ctx.body = {
        user_id: user.id,
        team_member_id: user.teamMemberId,
        role_ids: user.roles.map(role => role.role_id),
      }
    },
  })

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
    auth: loadedOrg,
    async handle({ org }, ctx) {
      const rows = await reviewerRows.list(backend.postgres.query, org.id)
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

const toUserFields = <Email>(body: Omit<ChangeUserBody, 'email'> & { email: Email }) => ({
  email: body.email,
  firstName: body.first_name,
  lastName: body.last_name,
  roleIds: body.role_ids,
})

const presentReviewer = (row: ReviewerRow): OrgReviewer => ({
  reviewer_id: row.id,
  email: row.email,
  masked_key: row.masked,
  created_by: row.createdBy,
  created_at: row.createdAt.getTime(),
})
