/** The order of a tag in a set says nothing. */
export const sortUniqueTags = (tags: readonly string[]): string[] => [...new Set(tags)].sort()

export const tagSetKey = (tags: readonly string[]): string => JSON.stringify(sortUniqueTags(tags))

/** Which tags shared memories bear together, and how many bear them. */
export type TagSet = {
  /** The tags in order, as a JSON array: as documents have it. */
  tagSet: string
  tags: readonly string[]
  memories: number
}
