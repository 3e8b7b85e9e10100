export const sortUniqueTags = (tags: readonly string[]): string[] => [...new Set(tags)].sort()

export const tagSetKey = (tags: readonly string[]): string => JSON.stringify(sortUniqueTags(tags))

/** A combination of tags of shared memories, and how many memories have it. */
export type TagSet = {
  /** The sorted tags as a JSON array, as documents hold them. */
  tagSet: string
  tags: readonly string[]
  memories: number
}
