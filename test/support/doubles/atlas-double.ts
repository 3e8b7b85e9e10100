import type { AggregateOptions, AggregationCursor, Collection, Db, Document } from 'mongodb'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import type { MemoryDocument } from '#shared/storage/mongo/documents.ts'
import {
  checkStageAgainstIndex,
  checkIndexDescription,
  checkStage,
  parseVector,
  throwServerError,
  type IndexDescription,
} from '#test/support/doubles/atlas-rules.ts'

export type AtlasDouble = {
  /** The deployment for the code under test: the real collection, with vector search. */
  mongo: Mongo
  /** Updates the indexes from the collection; they are never updated otherwise. */
  syncIndexes(): Promise<void>
  /** Finishes all index builds. */
  finishBuilds(): void
  /** Fails all index builds. */
  failBuilds(): void
  dropIndexes(): void
  /** Refuses the next creation of an index. */
  refuseCreation(message: string, code: number): void
  /** Every `$vectorSearch` stage that was answered. */
  searchStages: Document[]
  /** The description of every created index. */
  createdIndexes: IndexDescription[]
}

type State = 'INITIAL_SYNC' | 'STEADY' | 'FAILED'
type Index = { description: IndexDescription; state: State }

/**
 * Vector search over a collection of a server without it. It refuses what the documentation does not
 * allow, and its results are exact. An index is a copy of the collection at the last `syncIndexes`; as
 * in Atlas the documents of the results are read from the collection at the time of the search.
 *
 * @param database the database of `mongo`, through another client of the test.
 */
export function createAtlasDouble(mongo: Mongo, database: Db): AtlasDouble {
  const stored = database.collection<MemoryDocument>(mongo.memories.collectionName)
  const copy = database.collection<MemoryDocument>(`${stored.collectionName}_indexed`)
  const indexes = new Map<string, Index>()
  const answered: Document[] = []
  /** What was read of the copy since the last `syncIndexes`. */
  const rowsByFilter = new Map<string, Promise<MemoryDocument[]>>()
  let refusal: { message: string; code: number } | undefined

  const answers = async (pipeline: Document[], options: AggregateOptions): Promise<Document[]> => {
    const [{ $listSearchIndexes: which, $vectorSearch: stage } = {}, ...rest] = pipeline
    if (which) return listed(indexes, which)
    if (rest.some(next => '$vectorSearch' in next))
      throwServerError('$vectorSearch must come first', 40_602)
    if (!stage) return stored.aggregate(pipeline, options).toArray()

    checkStage(stage)
    const index = indexes.get(stage.index)
    if (!index) return []
    const { description, state } = index
    if (state !== 'STEADY')
      throwServerError(`cannot query vector index ${stage.index} while in state ${state}`)
    checkStageAgainstIndex(stage, description)
    const ids = await nearestIds(copy, stage, rowsByFilter)
    answered.push(stage)
    return stored.aggregate([...lookUp(ids), ...rest], options).toArray()
  }

  const createSearchIndex = async (description: Document): Promise<string> => {
    if (refusal) throwServerError(refusal.message, refusal.code)
    checkIndexDescription(description)
    const existing = indexes.get(description.name)?.description
    if (existing && JSON.stringify(existing) !== JSON.stringify(description)) {
      throwServerError('An index of this name has a different definition', 68)
    }
    if (!existing) indexes.set(description.name, { description, state: 'INITIAL_SYNC' })
    return description.name
  }

  const setAll = (state: State): void => {
    for (const index of indexes.values()) index.state = state
  }

  return {
    mongo: {
      ...mongo,
      memories: withSearch(mongo.memories, answers, createSearchIndex),
      hasVectorSearch: async () => true,
    },
    syncIndexes: () =>
      stored
        .aggregate([{ $out: copy.collectionName }])
        .toArray()
        .then(() => rowsByFilter.clear()),
    finishBuilds: () => setAll('STEADY'),
    failBuilds: () => setAll('FAILED'),
    dropIndexes: () => indexes.clear(),
    refuseCreation: (message, code) => void (refusal = { message, code }),
    searchStages: answered,
    get createdIndexes() {
      return [...indexes.values()].map(({ description }) => description)
    },
  }
}

/** The collection with the operations of the search process replaced. */
function withSearch(
  memories: Collection<MemoryDocument>,
  answers: (pipeline: Document[], options: AggregateOptions) => Promise<Document[]>,
  createSearchIndex: (description: Document) => Promise<string>,
): Collection<MemoryDocument> {
  const aggregate = (pipeline: Document[], options: AggregateOptions = {}) =>
    ({ toArray: () => answers(pipeline, options) }) as AggregationCursor<Document>
  const replaced = new Map<PropertyKey, unknown>(Object.entries({ aggregate, createSearchIndex }))
  return new Proxy(memories, {
    get(target, name) {
      if (replaced.has(name)) return replaced.get(name)
      const member: unknown = Reflect.get(target, name, target)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

function listed(indexes: ReadonlyMap<string, Index>, which: Document): Document[] {
  const unknown = Object.keys(which).filter(key => key !== 'name')
  if (unknown.length > 0) throwServerError(`unrecognized field ${unknown.join(', ')}`, 40_415)
  return [...indexes.values()]
    .filter(({ description }) => !which.name || description.name === which.name)
    .map(({ description: { name, type, definition }, state }) => ({
      id: name,
      name,
      type,
      status: { INITIAL_SYNC: 'BUILDING', STEADY: 'READY', FAILED: 'FAILED' }[state],
      queryable: state === 'STEADY',
      latestDefinition: definition,
    }))
}

/** Exact nearest neighbours; the order of equal scores is undefined. */
async function nearestIds(
  copy: Collection<MemoryDocument>,
  stage: Document,
  rowsByFilter: Map<string, Promise<MemoryDocument[]>>,
): Promise<string[]> {
  const queryVector = Float64Array.from(parseVector(stage.queryVector))
  const space = String(stage.path).replace('vectors.', '')
  const filter = { ...stage.filter, [stage.path]: { $exists: true } }
  const read = () => copy.find(filter, { projection: { [stage.path]: 1 } }).toArray()
  const known = rowsByFilter.get(JSON.stringify(filter)) ?? read()
  rowsByFilter.set(JSON.stringify(filter), known)
  return (await known)
    .map(row => ({ id: row._id, vector: row.vectors[space]!.toFloat32Array() }))
    .filter(
      ({ vector }) => vector.length === queryVector.length && vector.some(value => value !== 0),
    )
    .map(({ id, vector }) => ({ id, score: (1 + cosine(queryVector, vector)) / 2 }))
    .toSorted((a, b) => b.score - a.score || (a.id < b.id ? 1 : -1))
    .slice(0, stage.limit)
    .map(({ id }) => id)
}

type Numbers = Float64Array | Float32Array

const cosine = (a: Numbers, b: Numbers): number => dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b))

function dot(a: Numbers, b: Numbers): number {
  let sum = 0
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!
  return sum
}

/** Reads the documents in the order of `ids`; missing ones are omitted. */
const lookUp = (ids: string[]): Document[] => [
  { $match: { _id: { $in: ids } } },
  { $set: { rank: { $indexOfArray: [ids, '$_id'] } } },
  { $sort: { rank: 1 } },
  { $unset: 'rank' },
]
