import { MongoServerError, type Document } from 'mongodb'
import { refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'

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

/**
 * Release step, after `createIndexes` since it needs the collection: creates the vector search index
 * of every space that has none. Running it again, or twice at once, does nothing more. The deployment
 * builds an index on its own time; until then searches scan.
 *
 * @returns one outcome per space; none where search is not enabled.
 * @throws Refusal `unavailable` when the memory store is out of reach.
 */
export async function createSearchIndexes(
  mongo: Pick<Mongo, 'memories' | 'hasVectorSearch'>,
  spaces: readonly VectorSpace[],
): Promise<SearchIndexOutcome[]> {
  if (!(await mongo.hasVectorSearch())) return []
  try {
    const existing = await listSearchIndexes(mongo)
    const outcomes: SearchIndexOutcome[] = []
    for (const space of spaces) outcomes.push(await ensureSearchIndex(mongo, existing, space))
    return outcomes
  } catch (error) {
    if (isNotEnabled(error)) return []
    return refuseWhenUnreachable(error)
  }
}

/** Whether the index of a space exists and answers. An index answers while it is rebuilt. */
export async function isSearchable(
  mongo: Pick<Mongo, 'memories'>,
  space: string,
  signal: AbortSignal,
): Promise<boolean> {
  const name = searchIndexName(space)
  const found = await listSearchIndexes(mongo, { name }, signal)
  return found.some(index => index.name === name && index.queryable)
}

type SearchIndex = { name: string; queryable: boolean; latestDefinition?: Document }

const listSearchIndexes = (
  { memories }: Pick<Mongo, 'memories'>,
  which: { name?: string } = {},
  signal?: AbortSignal,
): Promise<SearchIndex[]> =>
  memories.aggregate<SearchIndex>([{ $listSearchIndexes: which }], signal && { signal }).toArray()

async function ensureSearchIndex(
  { memories }: Pick<Mongo, 'memories'>,
  existing: readonly SearchIndex[],
  space: VectorSpace,
): Promise<SearchIndexOutcome> {
  const index = searchIndexName(space.space)
  const definition = definitionOf(space)
  const present = existing.find(({ name }) => name === index)
  if (present)
    return { index, outcome: matchesDefinition(present, definition) ? 'present' : 'different' }
  try {
    await memories.createSearchIndex({ name: index, type: 'vectorSearch', definition })
    return { index, outcome: 'created' }
  } catch (error) {
    if (!(error instanceof MongoServerError) || isNotEnabled(error)) throw error
    // Another release may have been first. Otherwise it is a limit, such as three indexes on a free
    // cluster: searches scan then, which is no reason to stop a release.
    if (error.code === indexAlreadyExists) return { index, outcome: 'present' }
    return { index, outcome: 'refused', reason: error.message }
  }
}

type IndexField = { type: string; path: string; numDimensions?: number; similarity?: string }

const definitionOf = ({ space, dimension }: VectorSpace): { fields: IndexField[] } => ({
  fields: [
    {
      type: 'vector',
      path: `vectors.${space}`,
      numDimensions: dimension,
      similarity: 'cosine',
    },
    ...filterFields.map(path => ({ type: 'filter', path })),
  ],
})

/** The deployment may add defaults to a field, and an operator fields or another quantization. */
function matchesDefinition(
  { latestDefinition }: SearchIndex,
  { fields }: { fields: IndexField[] },
): boolean {
  const present: IndexField[] = latestDefinition?.fields ?? []
  return fields.every(({ type, path, numDimensions, similarity }) =>
    present.some(
      field =>
        field.type === type &&
        field.path === path &&
        field.numDimensions === numDimensions &&
        field.similarity === similarity,
    ),
  )
}

const indexAlreadyExists = 68

/**
 * Before 7.1 a server without search returns an empty list of indexes; it refuses to create one.
 */
const notEnabled = { commandNotFound: 59, commandNotSupported: 115, searchNotEnabled: 31_082 }

const isNotEnabled = (error: unknown): boolean =>
  error instanceof MongoServerError && Object.values(notEnabled).some(code => code === error.code)
