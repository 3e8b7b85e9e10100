import { useQuery, type QueryState } from '#api/console/app/use-query.ts'
import { call } from '#api/console/app/api-call.ts'
import type { EndpointResponse } from '#api/client/client.ts'

export type Org = EndpointResponse<'GET /v1/orgs/:orgId'>
export type ListedOrg = EndpointResponse<'GET /v1/orgs'>['orgs'][number]
export type Role = EndpointResponse<'GET /v1/orgs/:orgId/roles'>['roles'][number]
export type Tag = EndpointResponse<'GET /v1/orgs/:orgId/tags'>['tags'][number]
export type User = EndpointResponse<'GET /v1/orgs/:orgId/users'>['users'][number]
export type SharedMemory = EndpointResponse<'GET /v1/orgs/:orgId/memories'>['items'][number]

/** Props of the pages of an organization. */
export type OrgProps = { org: string }

const orgParams = (org: string) => ({ params: { orgId: org } })

export const useOrg = (org: string): QueryState<Org> =>
  useQuery(signal => call('GET /v1/orgs/:orgId', orgParams(org), signal), [org])

export const useRoles = (org: string): QueryState<Role[]> =>
  useQuery(
    async signal => (await call('GET /v1/orgs/:orgId/roles', orgParams(org), signal)).roles,
    [org],
  )

export const useTags = (org: string): QueryState<Tag[]> =>
  useQuery(
    async signal => (await call('GET /v1/orgs/:orgId/tags', orgParams(org), signal)).tags,
    [org],
  )

/** One item a line, not trimmed. */
export const splitLines = (text: string): string[] =>
  text
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')
