import type { Embedder } from '#shared/domain/embedder.ts'
import type { Caller } from '#shared/access/caller.ts'
import {
  byRelevance,
  type SourcesOfEmbedder,
} from '#shared/vault/read/lists/date-search-by-relevance.ts'
import {
  comparePositions,
  placeOfReflection,
  type TimeWindow,
} from '#shared/vault/read/lists/time-window.ts'
import type { Tier } from '#shared/domain/memory.ts'
import { openSharedEmbedders, sharedPartition } from '#shared/vault/base/shared-embedders.ts'
import { findSessionEpoch } from '#shared/vault/base/vault-changes.postgres.ts'
import { visiblePartition } from '#shared/vault/read/search/index-source.ts'
import type { DateSearchRow, DateSearchSource } from '#shared/vault/read/lists/dated-row.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { QueryVectorCache } from '#shared/search/query/query-vector-cache.ts'
import type { VaultIndexes } from '#shared/search/index/vault-indexes.ts'
import type { MemoryFilter, NearestSearch } from '#shared/vault/read/search/nearest.ts'
import { overlappingReflections, rowsWithin } from '#shared/vault/read/lists/timeline.mongo.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'

export type DateSearchQuestion = Omit<MemoryFilter, 'tiers'> & {
  window: TimeWindow
  session: string | null
  /** Ranks the rows of the window; without one they are returned in the order of time. */
  query: string | undefined
  /** Embedding model that names the vault space; without one all spaces are returned. */
  embeddings: string | undefined
  tiers: readonly Tier[]
  /** Rows of this source alone; of all of them without it. */
  source?: DateSearchRow['source'] | undefined
  /** Clamped to 1,000 to 200,000. */
  maxTokens: number
  order: 'newest_first' | 'oldest_first'
}

type DateSearchAnswer = {
  rows: DateSearchRow[]
  tokens: number
  /** There are more rows than fit. */
  truncated: boolean
  /**
   * ISO times of the first and last row, or of the window when there is none; when `truncated`, the end to
   * continue from is a millisecond beyond the last row.
   */
  returned: { from: string; to: string }
}

type DateSearchBackend = Stores & {
  embedders: Embedders
  queryVectors: QueryVectorCache
  vaultIndexes: VaultIndexes
  nearest: NearestSearch
  now: () => number
}

const tokensMin = 1_000
const tokensMax = 200_000
/** 200,000 tokens of one-word rows would be an answer of 50 MB. */
const rowsMax = 5_000
/** Reads of 1,000 rows each for one page, where the database is read. */
const readsMax = 10

/**
 * Finds what happened in a span of time. Reflections belong to the period they cover: one that overlaps the span
 * is in it. For a member the result includes what they may see of the shared memory.
 *
 * Rows are taken in the order of time until the next one would exceed the budget; at least one is. A page ends between
 * two milliseconds, over its budget if need be. With a query these are the rows that match it, and a page is best first.
 * A search that continues from `returned` (to its `from` newest first, from its `to` oldest first) returns what was left
 * out: every row exactly once.
 *
 * @throws Refusal `invalid` when `embeddings` names no known model, `upstream` when it does not answer,
 *   `unavailable`.
 */
export async function searchDates(
  backend: DateSearchBackend,
  caller: Pick<Caller, 'scope' | 'memberScope'>,
  question: DateSearchQuestion,
): Promise<DateSearchAnswer> {
  const { query, maxTokens, embeddings } = question
  const embedder =
    query === undefined && embeddings === undefined
      ? undefined
      : await backend.embedders.get(embeddings)
  const { window, source: asked } = question
  const isAsked = ({ source }: Pick<DateSearchSource, 'source'>): boolean =>
    asked === undefined || asked === source
  const own = [await ownSource(backend, caller, question, embedder)].filter(isAsked)
  const shared = isAsked({ source: 'org' }) ? await sharedSources(backend, caller, question) : []
  const sources = [...own, ...shared]
  const oldestFirst = question.order === 'oldest_first'
  const source =
    query === undefined || embedder === undefined
      ? chronological(backend, { sources, window, oldestFirst })
      : byRelevance(backend, await groupByEmbedder(backend, caller, { embedder, own, shared }), {
          window,
          query,
          oldestFirst,
        })
  const budget = Math.min(tokensMax, Math.max(tokensMin, maxTokens))
  const rows: DateSearchRow[] = []
  let tokens = 0
  let truncated = false
  let reads = 0
  let ended: number | undefined
  for await (const row of source) {
    if ('reached' in row) {
      truncated = ++reads === readsMax
      if (!truncated) continue
      ended = row.reached
      break
    }
    const isFull = rows.length >= rowsMax || tokens + row.tokens > budget
    truncated = isFull && rows.length > 0 && isAtAnotherTime(row, rows.at(-1)!)
    if (truncated) break
    rows.push(row)
    tokens += row.tokens
  }
  const returned = returnedRange(window, rows, truncated ? question.order : null, ended)
  if (query !== undefined) rows.sort((one, other) => scoreOf(other) - scoreOf(one))
  return { rows, tokens, truncated, returned }
}

async function ownSource(
  { postgres }: DateSearchBackend,
  { scope }: Pick<Caller, 'scope'>,
  { session, tiers, importance, condition }: DateSearchQuestion,
  embedder: Embedder | undefined,
): Promise<DateSearchSource> {
  const sessionEpoch = await findSessionEpoch(postgres.query, scope, session)
  const partition = { session, sessionEpoch }
  const read = { partition, tiers, importance, condition, space: embedder?.space }
  return { scope, read, source: session === null ? 'core' : 'session' }
}

/** Shared memories are raw and unrated; they are returned from every vault space. */
async function sharedSources(
  { postgres }: DateSearchBackend,
  { memberScope }: Pick<Caller, 'memberScope'>,
  { tiers, importance, condition }: DateSearchQuestion,
): Promise<DateSearchSource[]> {
  if (importance !== undefined) return []
  if (!memberScope || !tiers.includes(1)) return []
  const shared = sharedPartition(memberScope)
  const { scope, audience } = shared
  const partition = await visiblePartition(postgres, shared)
  if (partition.tagSets?.length === 0) return []
  const read = { partition, tiers: [1] as const, importance, condition, space: undefined }
  return [{ scope, read, source: 'org', audience }]
}

/** Groups the sources by the embedder whose vectors they have, as `recall` does. */
async function groupByEmbedder(
  backend: DateSearchBackend,
  { memberScope }: Pick<Caller, 'memberScope'>,
  searchedSources: {
    embedder: Embedder
    own: readonly DateSearchSource[]
    shared: readonly DateSearchSource[]
  },
): Promise<SourcesOfEmbedder[]> {
  const { embedder, own, shared } = searchedSources
  const ofOwn = own.length > 0 ? [{ embedder, sources: own, isOptional: false }] : []
  if (!memberScope || shared.length === 0) return ofOwn
  const [usual, ...former] = await openSharedEmbedders(backend, memberScope.orgSpace)
  const later = former.map(one => ({ embedder: one, sources: shared, isOptional: true }))
  if (usual.space === embedder.space) {
    return [{ embedder, sources: [...own, ...shared], isOptional: false }, ...later]
  }
  return [...ofOwn, { embedder: usual, sources: shared, isOptional: false }, ...later]
}

const scoreOf = ({ hit }: DateSearchRow): number => hit?.score ?? 0

const isAtAnotherTime = (one: DateSearchRow, other: DateSearchRow): boolean =>
  one.position.at !== other.position.at

function returnedRange(
  { from, to }: TimeWindow,
  rows: readonly DateSearchRow[],
  continuedOrder: DateSearchQuestion['order'] | null,
  ended: number | undefined,
): DateSearchAnswer['returned'] {
  const positions = rows.map(({ position }) => position).toSorted(comparePositions)
  const first = positions[0]?.at ?? from
  // A reflection may stand at the beginning of its period.
  const ends = rows.map(({ at, position }) => Math.max(position.at, Math.min(at, to)))
  const last = ends.reduce(
    (one, other) => Math.max(one, other),
    rows.length > 0 ? first : Math.max(from, to),
  )
  return {
    from: new Date(continuedOrder === 'newest_first' ? (ended ?? first) - 1 : first).toISOString(),
    to: new Date(continuedOrder === 'oldest_first' ? (ended ?? last + 1) : last).toISOString(),
  }
}

type ChronologicalQuery = {
  sources: readonly DateSearchSource[]
  window: TimeWindow
  oldestFirst: boolean
}

/** All rows of a window, of all sources, in the order of time; read from the database as they are consumed. */
async function* chronological(
  backend: { mongo: Mongo },
  { sources, window, oldestFirst }: ChronologicalQuery,
): AsyncGenerator<DateSearchRow, void, void> {
  const isBefore = (one: DateSearchRow, other: DateSearchRow): boolean => {
    const order = comparePositions(one.position, other.position)
    return oldestFirst ? order < 0 : order > 0
  }
  const rowIterators = sources.map(source =>
    rowsOfSource(backend, source, { window, oldestFirst, isBefore }),
  )
  try {
    const heads = await Promise.all(rowIterators.map(rowIterator => rowIterator.next()))
    for (;;) {
      let first = -1
      for (const [index, { value }] of heads.entries()) {
        if (value && (first < 0 || isBefore(value, heads[first]!.value!))) first = index
      }
      if (first < 0) return
      yield heads[first]!.value!
      heads[first] = await rowIterators[first]!.next()
    }
  } finally {
    await Promise.all(rowIterators.map(rowIterator => rowIterator.return()))
  }
}

/**
 * Merges the rows of a source with its reflections, each at its place in the window.
 */
async function* rowsOfSource(
  { mongo }: { mongo: Mongo },
  { scope, read: sourceRead, source }: DateSearchSource,
  query: Omit<ChronologicalQuery, 'sources'> & {
    isBefore(one: DateSearchRow, other: DateSearchRow): boolean
  },
): AsyncGenerator<DateSearchRow, void, void> {
  const { window, oldestFirst, isBefore } = query
  const read = { ...sourceRead, window, oldestFirst }
  const reflections = (
    await overlappingReflections(mongo, scope, { ...read, endingAfter: oldestFirst })
  )
    .map((row): DateSearchRow => {
      const at = placeOfReflection(row, window, oldestFirst)
      return { ...row, source, position: { at, id: row.id } }
    })
    .sort((a, b) => (isBefore(a, b) ? -1 : 1))
  const isPlaced = read.partition.session === null && !oldestFirst
  const tiers = isPlaced ? read.tiers.filter(tier => tier === 1) : read.tiers
  let next = 0
  if (tiers.length > 0) {
    for await (const within of rowsWithin(mongo, scope, { ...read, tiers })) {
      const row: DateSearchRow = { ...within, source, position: { at: within.at, id: within.id } }
      while (next < reflections.length && isBefore(reflections[next]!, row))
        yield reflections[next++]!
      yield row
    }
  }
  yield* reflections.slice(next)
}
