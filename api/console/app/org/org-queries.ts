import { hrefWith } from '#api/console/app/address.ts'
import type { View } from '#api/console/app/html.ts'
import { selectField } from '#api/console/app/parts/fields.ts'
import { useListing, type Listing } from '#api/console/app/queries.ts'
import type { ListedUser, OrgRole, OrgTag } from '#api/contract/generated/types.ts'

/** Props of the pages of an organization. */
export type OrgProps = { org: string }

export const useRoles = (org: string): Listing<OrgRole> =>
  useListing('GET /v1/orgs/:orgId/roles', { params: { orgId: org } }, answer => answer.roles)

export const useTags = (org: string): Listing<OrgTag> =>
  useListing('GET /v1/orgs/:orgId/tags', { params: { orgId: org } }, answer => answer.tags)

export const useUsers = (org: string): Listing<ListedUser> =>
  useListing('GET /v1/orgs/:orgId/users', { params: { orgId: org } }, answer => answer.users)

/** The address of the page that shows what a member sees: a user, or anyone with a role. */
export const seeAsHref = (
  org: string,
  choice: { user?: string; roles?: string; query?: string },
): string => hrefWith(choice, 'orgs', org, 'see-as')

/**
 * A filter by a tag: of the organization's, or another that the address names.
 *
 * @param bound as `of('tag')` of `useFilters`
 */
export function tagFilter(
  tags: readonly OrgTag[],
  bound: { value: string; onValue: (tag: string) => void },
): View {
  const labels = new Set([...tags.map(({ label }) => label), bound.value])
  labels.delete('')
  const choices = [...labels].map(label => [label, label] as const)
  return selectField({ label: 'Tag', ...bound, choices: [['', 'all'], ...choices] })
}
