import { DeleteIdsBody } from '#api/contract/generated/shapes.ts'
import type * as Types from '#api/contract/generated/types.ts'
import { refusal } from '#shared/core/refusal.ts'
import { allOf, type Condition } from '#shared/domain/condition.ts'
import { conditionOf, metadataCondition } from '#shared/domain/filter.ts'
import { parseMetadataObject } from '#shared/domain/metadata.ts'

/** Memories of one request. */
export const idsMax = 500

/**
 * The ids that a request names, in lower case, or the first 500 of memories with its metadata and filter.
 *
 * @param find of such memories: one more than 500, where there are more
 * @throws Refusal `invalid` for both and for neither.
 */
export async function idsOrMatching(
  body: Pick<Types.DeleteIdsBody, 'ids' | 'metadata' | 'filter'>,
  find: (condition: Condition) => Promise<string[]>,
): Promise<{ ids: string[]; hasMore?: boolean }> {
  const { ids } = body
  const condition = conditionOf(body)
  if ((ids === undefined) === (condition === undefined)) {
    throw refusal('invalid', 'memoriesNotNamed')
  }
  if (ids) return { ids: ids.map(id => id.toLowerCase()) }
  const found = await find(condition!)
  return { ids: found.slice(0, idsMax), hasMore: found.length > idsMax }
}

/** The condition of query parameters. @throws Refusal `invalid`, also for a text that is no JSON object. */
export function conditionOfQuery(query: {
  metadata?: string
  filter?: string
}): Condition | undefined {
  const read = (field: 'metadata' | 'filter') => {
    const text = query[field]
    return text === undefined ? undefined : parseMetadataObject(text, field)
  }
  return conditionOf({ metadata: read('metadata'), filter: checkFilter(read('filter')) })
}

/** The condition of `X-Memory-Filter`: fields of metadata, and in `filter` a whole filter. */
export function parseFilterHeader(
  { filter, ...metadata }: Record<string, unknown> = {},
  name: string,
): Condition | undefined {
  if (typeof filter !== 'object' || filter === null || Array.isArray(filter))
    return metadataCondition({ ...metadata, ...(filter !== undefined && { filter }) }, name)
  const whole = conditionOf({ filter: checkFilter(filter) })
  return allOf([metadataCondition(metadata, name), whole])
}

/** As in a body that changes something: nothing unknown is let through. */
const checkFilter = (filter: object | null | undefined): Types.MemoryFilter | undefined =>
  DeleteIdsBody.check({ filter }).filter
