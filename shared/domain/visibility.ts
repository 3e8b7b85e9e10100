import type { MemberScope } from '#shared/domain/member-scope.ts'
import { sortUniqueTags, type TagSet } from '#shared/domain/tags.ts'

/** What a reader may see of the shared memory: everything, or memories that have no tags but these. */
export type Visibility = { wildcard: true } | { wildcard: false; tags: readonly string[] }

/** What an admin of the organization sees. */
export const unrestricted: Visibility = { wildcard: true }

export const visibilityOf = ({
  wildcard,
  allowedTags,
}: Pick<MemberScope, 'wildcard' | 'allowedTags'>): Visibility =>
  wildcard ? unrestricted : { wildcard, tags: sortUniqueTags(allowedTags) }

/** Equal for visibilities that allow the same memories. */
export const visibilityKey = (visibility: Visibility): string =>
  visibility.wildcard ? '*' : JSON.stringify(visibility.tags)

/** Whether all tags of a memory are allowed; a memory without tags is visible to all. */
export function isPermitted(visibility: Visibility, tags: readonly string[]): boolean {
  if (visibility.wildcard) return true
  const allowed = new Set(visibility.tags)
  return tags.every(tag => allowed.has(tag))
}

/** Who sees a memory: all members, some roles, or only those that see all. @param roles the allowed tags of each role */
export function sensitivityOf(
  tags: readonly string[],
  roles: readonly (readonly string[])[],
): 'open' | 'internal' | 'restricted' {
  if (tags.length === 0) return 'open'
  const allowed = roles.filter(role => !role.includes('*')).flat()
  return isPermitted({ wildcard: false, tags: allowed }, tags) ? 'internal' : 'restricted'
}

/** Splits the existing tag sets into those that a reader may see and the others. */
export function partitionTagSets(
  visibility: Visibility,
  sets: readonly TagSet[],
): { permitted: TagSet[]; dropped: TagSet[] } {
  const { permitted = [], dropped = [] } = Object.groupBy(sets, ({ tags }) =>
    isPermitted(visibility, tags) ? 'permitted' : 'dropped',
  )
  return { permitted, dropped }
}
