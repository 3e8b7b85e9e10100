import type { Embedder } from '#shared/domain/embedder.ts'
import type { Memory } from '#shared/domain/memory.ts'
import { momentOf } from '#shared/vault/read/search/as-of.ts'
import { mergeRankings } from '#shared/vault/read/search/recall.ts'
import {
  comparePositions,
  placeOfReflection,
  type TimeWindow,
} from '#shared/vault/read/lists/time-window.ts'
import type { ListedRow } from '#shared/vault/read/lists/listing.mongo.ts'
import { embeddedReflections } from '#shared/vault/read/lists/timeline.mongo.ts'
import { undefinedIfUnavailable } from '#shared/vault/base/shared-embedders.ts'
import { putInSlices } from '#shared/search/index/load-index.ts'
import { createVaultIndex, type VaultIndex } from '#shared/search/index/vault-index.ts'
import { rankInTurns, type SearchHit } from '#shared/search/ranking/rank.ts'
import { isContext, isMatch } from '#shared/search/ranking/signals.ts'
import { questionKind } from '#shared/search/query/sentence-kinds.ts'
import { spansOf } from '#shared/search/index/spans.ts'
import type { Span } from '#shared/domain/lease.ts'
import { termsOf } from '#shared/search/words/index-terms.ts'
import type { DateSearchRow, DateSearchSource } from '#shared/vault/read/lists/dated-row.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import type { QueryVectorCache } from '#shared/search/query/query-vector-cache.ts'
import type { VaultIndexes } from '#shared/search/index/vault-indexes.ts'
import type { NearestSearch } from '#shared/vault/read/search/nearest.ts'
import { missingWords } from '#shared/vault/read/search/exact-words.ts'
import { wholeOrPartialIndex } from '#shared/vault/read/search/searchable-index.ts'
import { memoriesWithWords } from '#shared/vault/read/search/words.mongo.ts'

type RankingBackend = {
  mongo: Mongo
  queryVectors: QueryVectorCache
  vaultIndexes: VaultIndexes
  nearest: NearestSearch
  now: () => number
}

/** Sources that are ranked with the vectors of one embedder. */
export type SourcesOfEmbedder = {
  embedder: Embedder
  sources: readonly DateSearchSource[]
  /** They are left out when the model does not answer. */
  isOptional: boolean
}

type RelevanceQuery = { window: TimeWindow; query: string; oldestFirst: boolean }

/** Candidates asked of the database for a vault that is too large for an index in memory. */
const candidatesMax = 2_000

/**
 * All rows of a window that match a query by themselves, each with its score, in the order of time; ranked in spans of about
 * 1,000 rows as they are consumed. Raw memories are ranked in the vaults' indexes; reflections are fetched, since the index
 * does not hold the periods they cover.
 */
export async function* byRelevance(
  backend: RankingBackend,
  parts: readonly SourcesOfEmbedder[],
  relevanceQuery: RelevanceQuery,
): AsyncGenerator<DateSearchRow, void, void> {
  const { window, oldestFirst } = relevanceQuery
  const opened = await Promise.all(
    parts.map(part => {
      const opening = openPart(backend, part, relevanceQuery)
      return part.isOptional ? undefinedIfUnavailable(opening) : opening
    }),
  )
  const ranked = opened.flatMap(part => part ?? [])
  const spans = spansOf(
    ranked.flatMap(({ indexes }) => indexes),
    { from: window.from, to: window.to + 1 },
  )
  for (const span of oldestFirst ? spans : spans.toReversed()) {
    const rankings = await Promise.all(ranked.map(({ rank }) => rank(span)))
    const rows = rankings.length === 1 ? rankings[0]! : mergeRankings(rankings.flat(), 'score')
    yield* rows
      .map(({ row }) => row)
      .sort((one, other) => (oldestFirst ? 1 : -1) * comparePositions(one.position, other.position))
  }
}

type RankedRow = SearchHit & { row: DateSearchRow }

/** A part that is loaded, and what ranks a span [from, to) of it. */
type OpenedPart = {
  indexes: readonly VaultIndex[]
  rank(span: Span): Promise<RankedRow[]>
}

async function openPart(
  backend: RankingBackend,
  { embedder, sources }: SourcesOfEmbedder,
  { window, query, oldestFirst }: RelevanceQuery,
): Promise<OpenedPart> {
  const vector = await backend.queryVectors.embed(embedder, query)
  const opened = await Promise.all(
    sources.map(source =>
      loadSourceIndex(backend, { source, window, embedder, vector, query, oldestFirst }),
    ),
  )
  const indexes = opened.map(({ vaultIndex }) => vaultIndex)
  const { tiers, importance, metadata } = sources[0]!.read
  const search = {
    now: momentOf(backend, window.asOf),
    limit: Infinity,
    floor: false,
    // What is known of the person who asks is found by its time.
    everyRow: questionKind(query) !== 'self',
    query,
    calibration: embedder.calibration,
    tiers,
    ...(importance !== undefined && { importance }),
    ...(metadata && { metadata }),
  }
  async function rank(span: Span): Promise<RankedRow[]> {
    const questions = [{ text: query, vector, kind: 'whole' as const }]
    const ranked = await rankInTurns(async () => indexes, questions, { ...search, ...span })
    return ranked
      .filter(({ signals }) => isMatch(signals) && !isContext(signals))
      .map(one => {
        const { memory, indexNumber, score, similarity, signals } = one
        const { source } = sources[indexNumber]!
        const listed = opened[indexNumber]!.rows.get(memory.id) ?? toListedRow(memory)
        const position = { at: memory.at, id: memory.id }
        return { ...one, row: { ...listed, source, position, hit: { score, similarity, signals } } }
      })
  }
  return { indexes, rank }
}

type SourceQuery = {
  source: DateSearchSource
  window: TimeWindow
  embedder: Embedder
  vector: Float32Array
  query: string
  oldestFirst: boolean
}

type SourceIndex = { vaultIndex: VaultIndex; rows: Map<string, ListedRow> }

async function loadSourceIndex(
  backend: RankingBackend,
  sourceQuery: SourceQuery,
): Promise<SourceIndex> {
  const [raw, reflections] = await Promise.all([
    loadRawIndex(backend, sourceQuery),
    loadReflectionIndex(backend, sourceQuery),
  ])
  const blocks = { ...reflections.vaultIndex.byTier, 1: raw.byTier[1] }
  return { vaultIndex: { ...reflections.vaultIndex, byTier: blocks }, rows: reflections.rows }
}

/** An index of raw memories: of the whole vault, or of the candidates in the window. */
async function loadRawIndex(
  backend: RankingBackend,
  { source, window, embedder: { space, dimension }, vector, query }: SourceQuery,
): Promise<VaultIndex> {
  const { scope, audience, read } = source
  const { partition, tiers, importance, metadata } = read
  const candidateIndex = createVaultIndex({ dimension, termsOf })
  if (!tiers.includes(1) || importance !== undefined) return candidateIndex
  const partitionRef = { scope, session: partition.session, ...(audience && { audience }) }
  const [from, to] = [window.from, window.to + 1]
  const question = {
    partition,
    space,
    vector,
    count: candidatesMax,
    tiers: [1] as const,
    from,
    to,
    ...(metadata && { metadata }),
  }
  return wholeOrPartialIndex(backend, { ...partitionRef, space, dimension }, async way => {
    const byMeaning = await backend.nearest[way](scope, question)
    if (byMeaning === null) return null
    const words = missingWords(query, byMeaning)
    const byWords = await memoriesWithWords(backend.mongo, scope, question, words)
    await putInSlices(candidateIndex, [...byMeaning, ...byWords])
    return candidateIndex
  })
}

/** The reflections of the window, each at its place in the order of time. */
async function loadReflectionIndex(
  { mongo }: RankingBackend,
  { source: { scope, read }, window, embedder: { space, dimension }, oldestFirst }: SourceQuery,
): Promise<SourceIndex> {
  const reflectionIndex = createVaultIndex({ dimension, termsOf })
  const isRaw = read.partition.session !== null || read.tiers.every(tier => tier === 1)
  if (isRaw) return { vaultIndex: reflectionIndex, rows: new Map() }
  const reflections = await embeddedReflections(mongo, scope, { ...read, window, space })
  const placed = reflections.map(({ memory, row }) => ({
    ...memory,
    at: placeOfReflection(row, window, oldestFirst),
  }))
  await putInSlices(reflectionIndex, placed)
  return { vaultIndex: reflectionIndex, rows: new Map(reflections.map(({ row }) => [row.id, row])) }
}

const toListedRow = (memory: Memory): ListedRow => ({
  ...memory,
  consolidated: false,
  covers: null,
})
