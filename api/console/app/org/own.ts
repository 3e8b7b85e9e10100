import { useAsked, type Asked } from '#api/console/app/asked.ts'
import { call } from '#api/console/app/call.ts'
import type { AnswerOf } from '#api/client/client.ts'

export type Org = AnswerOf<'GET /v1/orgs/:orgId'>
export type Role = AnswerOf<'GET /v1/orgs/:orgId/roles'>['roles'][number]
export type Tag = AnswerOf<'GET /v1/orgs/:orgId/tags'>['tags'][number]
export type User = AnswerOf<'GET /v1/orgs/:orgId/users'>['users'][number]
export type Shared = AnswerOf<'GET /v1/orgs/:orgId/memories'>['items'][number]

/** What pages of an organization are given. */
export type OfOrg = { org: string }

const inOrg = (org: string) => ({ params: { orgId: org } })

export const useOrg = (org: string): Asked<Org> =>
  useAsked(signal => call('GET /v1/orgs/:orgId', inOrg(org), signal), [org])

export const useRoles = (org: string): Asked<Role[]> =>
  useAsked(
    async signal => (await call('GET /v1/orgs/:orgId/roles', inOrg(org), signal)).roles,
    [org],
  )

export const useTags = (org: string): Asked<Tag[]> =>
  useAsked(async signal => (await call('GET /v1/orgs/:orgId/tags', inOrg(org), signal)).tags, [org])

/** `a, b,c` as a list: trimmed, without what is empty or there twice. */
export const listOf = (text: string): string[] => [
  ...new Set(
    text
      .split(/[,\n]/)
      .map(one => one.trim())
      .filter(one => one !== ''),
  ),
]

/** One text a line, as it is. */
export const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')
