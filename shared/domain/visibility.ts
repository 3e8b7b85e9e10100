import type { MemberScope } from '#shared/domain/member-scope.ts'
import { sortUniqueTags, type TagSet } from '#shared/domain/tags.ts'

/**
 * What somebody may see of a shared memory: all of it, or what bears no tags but these. Nobody in
 * particular has no tags, and sees what bears none.
 */
export type Visibility = { wildcard: true } | { wildcard: false; tags: readonly string[] }

/** An admin of the organization. */
export const unrestricted: Visibility = { wildcard: true }

/** What a member may see by the roles they have at this moment. */
export const visibilityOf = ({
  wildcard,
  allowedTags,
}: Pick<MemberScope, 'wildcard' | 'allowedTags'>): Visibility =>
  wildcard ? unrestricted : { wildcard, tags: sortUniqueTags(allowedTags) }

/** The same for audiences that see the same, and different for others. */
export const visibilityKey = (visibility: Visibility): string =>
  visibility.wildcard ? '*' : JSON.stringify(visibility.tags)

/** Whether all tags of a memory are allowed; one that has none is everybody's. */
export function isPermitted(visibility: Visibility, tags: readonly string[]): boolean {
  if (visibility.wildcard) return true
  const allowed = new Set(visibility.tags)
  return tags.every(tag => allowed.has(tag))
}

/** Who can see a memory: everyone, some roles, or only those that see everything. */
export type Sensitivity = 'open' | 'internal' | 'restricted'

/**
 * What somebody with all roles but those with `*` may see is not restricted.
 *
 * @param roles the allowed tags of each role of the organization
 */
export function sensitivityOf(
  tags: readonly string[],
  roles: readonly (readonly string[])[],
): Sensitivity {
  if (tags.length === 0) return 'open'
  const allowed = roles.filter(role => !role.includes('*')).flat()
  return isPermitted({ wildcard: false, tags: allowed }, tags) ? 'internal' : 'restricted'
}

/**
 * The sets of tags an audience may see, of those that there are, and how many memories they bear
 * together. A set that is not known yet is seen by nobody.
 */
export function partitionTagSets(
  visibility: Visibility,
  sets: readonly TagSet[],
): { permitted: TagSet[]; dropped: TagSet[] } {
  const { permitted = [], dropped = [] } = Object.groupBy(sets, ({ tags }) =>
    isPermitted(visibility, tags) ? 'permitted' : 'dropped',
  )
  return { permitted, dropped }
}
