import type { Router } from '@koa/router'
import type { Directory, ScimToken } from '#api/contract/generated/types.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { loadedOrg, orgAdmin } from '#api/edge/auth.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { presentDirectorySettings } from '#api/present/org.ts'
import { parseFutureDate } from '#shared/core/dates.ts'
import { changeDirectorySettings } from '#shared/org/admin/directory-settings.ts'
import { createScimToken, removeScimToken } from '#shared/org/admin/scim-tokens.ts'
import { groupRows, readDirectorySettings } from '#shared/org/base/groups.postgres.ts'
import { requireOrganization } from '#shared/org/base/policy-change.ts'
import { scimTokenRows, type ScimTokenRow } from '#shared/org/base/scim-tokens.postgres.ts'

/** How members come and go: tokens of directories, what groups give, and whether members have to sign in. */
export function directory(router: Router, backend: ApiBackend): void {
  const { query } = backend.postgres

  endpoint(router, backend, {
    route: 'GET /v1/orgs/:orgId/directory',
    auth: loadedOrg,
    async handle({ org }, ctx) {
      ctx.body = await readDirectory(org.id)
    },
  })

  endpoint(router, backend, {
    route: 'PUT /v1/orgs/:orgId/directory',
    auth: orgAdmin,
    async current({ orgAdmin }) {
      const { id } = await requireOrganization(query, orgAdmin.admin, orgAdmin.org)
      return readDirectory(id)
    },
    async handle({ orgAdmin, body }, ctx) {
      const org = orgAdmin.org.toLowerCase()
      await changeDirectorySettings(
        backend,
        { ...orgAdmin, org },
        {
          required: body.sign_in_required,
          hours: body.sign_in_hours,
          grants: body.grants?.map(({ group, role_ids: roleIds = [], reviews }) => {
            return { group, roleIds, reviews }
          }),
        },
      )
      ctx.body = await readDirectory(org)
    },
  })

  endpoint(router, backend, {
    route: 'POST /v1/orgs/:orgId/scim-tokens',
    auth: orgAdmin,
    async handle({ orgAdmin, body, claim }, ctx) {
      const { description = '', expires_at: end } = body ?? {}
      const expiresAt = parseFutureDate(end, backend.now())
      const given = { description, expiresAt }
      const { token, key } = await createScimToken(backend, orgAdmin, claim.operation, given)
      ctx.status = 201
      ctx.body = { ...presentToken(token), token: key }
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/orgs/:orgId/scim-tokens',
    auth: loadedOrg,
    async handle({ org }, ctx) {
      ctx.body = { tokens: (await scimTokenRows.list(query, org.id)).map(presentToken) }
    },
  })

  endpoint(router, backend, {
    route: 'DELETE /v1/orgs/:orgId/scim-tokens/:tokenId',
    auth: orgAdmin,
    async handle({ orgAdmin, params, claim }, ctx) {
      const id = params.tokenId
      await removeScimToken(backend, orgAdmin, id, claim.operation)
      ctx.body = { deleted: true, id }
    },
  })

  async function readDirectory(org: string): Promise<Directory> {
    const settings = await readDirectorySettings(query, org)
    const groups = await groupRows.list(query, org)
    return {
      org_id: org,
      ...presentDirectorySettings(settings),
      groups: groups.map(({ id, name, externalId, members }) => {
        return { group_id: id, name, external_id: externalId, members: members.length }
      }),
    }
  }
}

const presentToken = (token: ScimTokenRow): ScimToken => ({
  token_id: token.id,
  description: token.description,
  masked_token: token.masked,
  created_by: token.createdBy,
  created_at: token.createdAt.getTime(),
  expires_at: token.expiresAt?.getTime() ?? null,
  last_used_at: token.lastUsedAt?.getTime() ?? null,
})
