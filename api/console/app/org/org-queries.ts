import { useListing, type Listing } from '#api/console/app/queries.ts'
import type { OrgRole, OrgTag } from '#api/contract/generated/types.ts'

/** Props of the pages of an organization. */
export type OrgProps = { org: string }

export const useRoles = (org: string): Listing<OrgRole> =>
  useListing('GET /v1/orgs/:orgId/roles', { params: { orgId: org } }, answer => answer.roles)

export const useTags = (org: string): Listing<OrgTag> =>
  useListing('GET /v1/orgs/:orgId/tags', { params: { orgId: org } }, answer => answer.tags)
