import { Refusal } from '#shared/core/errors.ts'
import { parseMetadataFilter, type MetadataFilter } from '#shared/domain/metadata.ts'

/** Memories of one request. */
export const idsMax = 500

/**
 * The ids that a request names, in lower case, or the first 500 of memories with its metadata.
 *
 * @param find of such metadata: one more than 500, where there are more
 * @throws Refusal `invalid` for both and for neither.
 */
export async function idsOrMatching(
  { ids, metadata }: { ids?: string[]; metadata?: Record<string, unknown> },
  find: (filter: MetadataFilter) => Promise<string[]>,
): Promise<{ ids: string[]; hasMore?: boolean }> {
  const filter = parseMetadataFilter(metadata)
  if ((ids === undefined) === (filter === undefined)) {
    throw new Refusal(
      'invalid',
      'The body must have either ids or metadata',
      'Name up to 500 memories by ids, or by metadata, such as {"metadata":{"run_id":"r-7"}}',
    )
  }
  if (ids) return { ids: ids.map(id => id.toLowerCase()) }
  const found = await find(filter!)
  return { ids: found.slice(0, idsMax), hasMore: found.length > idsMax }
}
