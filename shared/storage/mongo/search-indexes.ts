import { MongoServerError, type Document } from 'mongodb'
import type { VectorIndexOptions } from '#shared/core/config.ts'
import type { Log } from '#shared/core/log.ts'
import { refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import { isSearchMissing, isUnreachable } from '#shared/storage/mongo/server-errors.ts'

export type VectorSpace = { space: string; dimension: number }

export type SearchIndexOutcome = {
  index: string
  /**
   * `created` now and still building; `present` before; `different` from ours and not changed (drop
   * it to have it created again); `refused` by the deployment, for `reason`.
   */
  outcome: 'created' | 'present' | 'different' | 'refused'
  reason?: string
}

/** The index of a vault space. */
export const searchIndexName = (space: string): string => `vectors_${space}`

const filterFields = [
  'vault',
  'epoch',
  'session',
  'session_epoch',
  'tier',
  'at',
  'importance',
  'tag_set',
]
/** Indexes that were made without it answer every question that has no filter of metadata. */
const metadataField = 'metadata'

const usualOptions: VectorIndexOptions = { quantization: 'none', method: 'hnsw' }

/**
 * After `createIndexes`, since it needs the collection: creates the vector search index of every space
 * that has none. Running it again, or twice at once, does nothing more. The deployment builds an index
 * on its own time; until then searches scan.
 *
 * @returns one outcome per space; none where search is not enabled.
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export async function createSearchIndexes(
  mongo: Pick<Mongo, 'memories' | 'hasVectorSearch'>,
  spaces: readonly VectorSpace[],
  options: VectorIndexOptions = usualOptions,
): Promise<SearchIndexOutcome[]> {
  if (!(await mongo.hasVectorSearch())) return []
  try {
    const existing = await listSearchIndexes(mongo)
    const outcomes: SearchIndexOutcome[] = []
    for (const space of spaces)
      outcomes.push(await ensureSearchIndex(mongo, existing, space, options))
    return outcomes
  } catch (error) {
    if (isSearchMissing(error)) return []
    return refuseWhenUnreachable(error)
  }
}

/**
 * As `createSearchIndexes`, for work that goes on without them: logs the outcomes, and the error when
 * the deployment refuses, as without the right to create indexes.
 */
export async function requestSearchIndexes(
  mongo: Pick<Mongo, 'memories' | 'hasVectorSearch'>,
  spaces: readonly VectorSpace[],
  { options, log }: { options: VectorIndexOptions; log: Pick<Log, 'info' | 'warn'> },
): Promise<void> {
  try {
    for (const index of await createSearchIndexes(mongo, spaces, options)) {
      if (index.outcome === 'created' || index.outcome === 'present')
        log.info(index, 'search-index.checked')
      else log.warn(index, 'search-index.checked')
    }
  } catch (error) {
    log.warn({ err: error, spaces: spaces.map(({ space }) => space) }, 'search-index.missing')
  }
}

/**
 * Whether an index of a space exists, has its vectors and answers. An index answers while it is rebuilt.
 */
export async function isSearchable(
  mongo: Pick<Mongo, 'memories'>,
  space: VectorSpace & { filtersMetadata?: boolean },
  signal: AbortSignal,
): Promise<boolean> {
  const name = searchIndexName(space.space)
  const found = await listSearchIndexes(mongo, { name }, signal)
  return found.some(
    index =>
      index.name === name &&
      index.queryable &&
      (!space.filtersMetadata || hasMetadataField(index)) &&
      matchesDefinition(index, definitionOf(space, usualOptions)),
  )
}

type SearchIndex = { name: string; queryable: boolean; latestDefinition?: Document }

const listSearchIndexes = (
  { memories }: Pick<Mongo, 'memories'>,
  which: { name?: string } = {},
  signal?: AbortSignal,
): Promise<SearchIndex[]> =>
  memories.aggregate<SearchIndex>([{ $listSearchIndexes: which }], signal && { signal }).toArray()

async function ensureSearchIndex(
  mongo: Pick<Mongo, 'memories'>,
  existing: readonly SearchIndex[],
  space: VectorSpace,
  options: VectorIndexOptions,
): Promise<SearchIndexOutcome> {
  const index = searchIndexName(space.space)
  const present = existing.find(({ name }) => name === index)
  if (present) {
    const isUsable = matchesDefinition(present, definitionOf(space, options))
    if (!isUsable) return { index, outcome: 'different' }
    return {
      index,
      outcome: 'present',
      ...(!hasMetadataField(present) && { reason: withoutMetadata }),
    }
  }
  const first = await createSearchIndex(mongo, space, options)
  if (first.outcome !== 'refused' || options.method === 'hnsw') return first
  // A deployment that does not serve flat indexes yet refuses the field.
  const second = await createSearchIndex(mongo, space, { ...options, method: 'hnsw' })
  const reason = `not with the flat method: ${first.reason}`
  return second.outcome === 'created' ? { ...second, reason } : second
}

async function createSearchIndex(
  { memories }: Pick<Mongo, 'memories'>,
  space: VectorSpace,
  options: VectorIndexOptions,
): Promise<SearchIndexOutcome> {
  const index = searchIndexName(space.space)
  const definition = definitionOf(space, options)
  try {
    await memories.createSearchIndex({ name: index, type: 'vectorSearch', definition })
    return { index, outcome: 'created' }
  } catch (error) {
    const isPassing = isSearchMissing(error) || isUnreachable(error)
    if (!(error instanceof MongoServerError) || isPassing) throw error
    // Another release may have been first. Otherwise it is a limit, such as three indexes on a free
    // cluster: searches scan then, which is no reason to stop a release.
    if (error.code === indexAlreadyExists) return { index, outcome: 'present' }
    return { index, outcome: 'refused', reason: error.message }
  }
}

type IndexField = {
  type: string
  path: string
  numDimensions?: number
  similarity?: string
  quantization?: string
  indexingMethod?: string
}

const definitionOf = (
  { space, dimension }: VectorSpace,
  { quantization, method }: VectorIndexOptions,
): { fields: IndexField[] } => ({
  fields: [
    {
      type: 'vector',
      path: `vectors.${space}`,
      numDimensions: dimension,
      similarity: 'cosine',
      ...(quantization !== 'none' && { quantization }),
      ...(method === 'flat' && { indexingMethod: 'flat' }),
    },
    ...[...filterFields, metadataField].map(path => ({ type: 'filter', path })),
  ],
})

/** The deployment may add defaults to a field; an operator fields, another quantization or method. */
function matchesDefinition(
  { latestDefinition }: SearchIndex,
  { fields }: { fields: IndexField[] },
): boolean {
  const present: IndexField[] = latestDefinition?.fields ?? []
  return fields.every(
    ({ type, path, numDimensions, similarity }) =>
      path === metadataField ||
      present.some(
        field =>
          field.type === type &&
          field.path === path &&
          field.numDimensions === numDimensions &&
          field.similarity === similarity,
      ),
  )
}

const hasMetadataField = ({ latestDefinition }: SearchIndex): boolean =>
  (latestDefinition?.fields as IndexField[] | undefined)?.some(
    ({ type, path }) => type === 'filter' && path === metadataField,
  ) ?? false

const withoutMetadata =
  'without the filter metadata, so that searches by metadata read the vault; drop it to have it created again'

const indexAlreadyExists = 68
