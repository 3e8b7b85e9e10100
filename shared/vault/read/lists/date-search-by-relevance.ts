import type { Condition } from '#shared/domain/condition.ts'
import type { Embedder } from '#shared/domain/embedder.ts'
import type { Memory } from '#shared/domain/memory.ts'
import { momentOf } from '#shared/vault/read/search/as-of.ts'
import {
  comparePositions,
  placeOfReflection,
  type TimeWindow,
} from '#shared/vault/read/lists/time-window.ts'
import type { ListedRow } from '#shared/vault/read/lists/listing.mongo.ts'
import { embeddedReflections, embeddedWithin } from '#shared/vault/read/lists/timeline.mongo.ts'
import { undefinedIfUnavailable } from '#shared/vault/base/shared-embedders.ts'
import { putInSlices } from '#shared/search/index/load-index.ts'
import { createVaultIndex, type VaultIndex } from '#shared/search/index/vault-index.ts'
import { rankInTurns } from '#shared/search/ranking/rank.ts'
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
import { wholeOrPartialIndex } from '#shared/vault/read/search/searchable-index.ts'

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

/**
 * All rows of a window that match a query by themselves, each with its score, in the order of time; ranked in spans of about
 * 1,000 rows as they are consumed. Raw memories are ranked in the vaults' indexes; those of a vault that is too large for one
 * are read from the database, as many at a time, and after each read it is told how far that was. Reflections are fetched,
 * since the index does not hold the periods they cover.
 */
export async function* byRelevance(
  backend: RankingBackend,
  parts: readonly SourcesOfEmbedder[],
  relevanceQuery: RelevanceQuery,
): AsyncGenerator<DateSearchRow | { reached: number }, void, void> {
  const { window, oldestFirst } = relevanceQuery
  const opened = await Promise.all(
    parts.map(part => {
      const opening = openPart(backend, part, relevanceQuery)
      return part.isOptional ? undefinedIfUnavailable(opening) : opening
    }),
  )
  const openedParts = opened.flatMap(part => part ?? [])
  let rest: Span = { from: window.from, to: window.to + 1 }
  while (rest.from < rest.to) {
    const ranked = await Promise.all(openedParts.map(read => read(rest)))
    const whole = overlapOf(ranked.map(({ span }) => span))
    const spans = spansOf(
      ranked.flatMap(({ indexes }) => indexes),
      whole,
    )
    for (const span of oldestFirst ? spans : spans.toReversed()) {
      const found = await Promise.all(ranked.map(({ rank }) => rank(span)))
      // Two models may find the same memory.
      const rows = [...new Map(found.flat().map(row => [row.id, row])).values()]
      yield* rows.sort(
        (one, other) => (oldestFirst ? 1 : -1) * comparePositions(one.position, other.position),
      )
    }
    rest = oldestFirst ? { ...rest, from: whole.to } : { ...rest, to: whole.from }
    if (rest.from < rest.to) yield { reached: oldestFirst ? rest.from : rest.to }
  }
}

const overlapOf = (spans: readonly Span[]): Span => ({
  from: Math.max(...spans.map(({ from }) => from)),
  to: Math.min(...spans.map(({ to }) => to)),
})

/** Loads a part. @returns what reads the rows that come first in a span, or all of it */
async function openPart(
  backend: RankingBackend,
  { embedder, sources }: SourcesOfEmbedder,
  { window, query, oldestFirst }: RelevanceQuery,
): Promise<
  (span: Span) => Promise<{
    indexes: readonly VaultIndex[]
    span: Span
    rank(span: Span): Promise<DateSearchRow[]>
  }>
> {
  const { space, dimension } = embedder
  const vector = await backend.queryVectors.embed(embedder, query)
  const opened = await Promise.all(
    sources.map(async source => {
      const [raw, reflections] = await Promise.all([
        loadRawIndex(backend, source, embedder),
        loadReflectionIndex(backend, source, { window, embedder, oldestFirst }),
      ])
      return { source, raw, ...reflections }
    }),
  )
  const { tiers, importance, condition } = sources[0]!.read
  const search = {
    now: momentOf(backend, window.asOf),
    limit: Infinity,
    floor: false,
    // What is known of the person who asks is found by its time.
    everyRow: questionKind(query) !== 'self',
    wholeText: query,
    calibration: embedder.calibration,
    tiers,
    ...(importance !== undefined && { importance }),
    // Reflections were read by it; here they stand at another time than theirs.
    condition: condition && { or: [isReflection, condition] },
    sessions: sources.map(({ read }) => read.partition.session),
  }
  const questions = [{ text: query, vector, kind: 'whole' as const }]
  return async rest => {
    const read = opened.map(async ({ source, raw, vaultIndex }) => {
      const asked = { ...source.read, space, oldestFirst }
      const within = raw
        ? undefined
        : await embeddedWithin(backend.mongo, source.scope, asked, rest)
      const index = raw ?? createVaultIndex({ dimension, termsOf })
      await putInSlices(index, within?.found ?? [])
      const byTier = { ...vaultIndex.byTier, 1: index.byTier[1] }
      return { vaultIndex: { ...vaultIndex, byTier }, span: within?.span ?? rest }
    })
    const found = await Promise.all(read)
    const indexes = found.map(one => one.vaultIndex)
    const rank = async (span: Span): Promise<DateSearchRow[]> => {
      const ranked = await rankInTurns(async () => indexes, questions, { ...search, ...span })
      return ranked
        .filter(({ signals }) => isMatch(signals) && !isContext(signals))
        .map(({ memory, indexNumber, score, similarity, signals }) => {
          const { source, rows } = opened[indexNumber]!
          const listed = rows.get(memory.id) ?? toListedRow(memory)
          const position = { at: memory.at, id: memory.id }
          return { ...listed, source: source.source, position, hit: { score, similarity, signals } }
        })
    }
    return { indexes, span: overlapOf(found.map(({ span }) => span)), rank }
  }
}

/** The index of all raw memories of a source; undefined where it is too large, or being loaded. */
async function loadRawIndex(
  backend: RankingBackend,
  { scope, audience, read: { partition, tiers, importance } }: DateSearchSource,
  { space, dimension }: Embedder,
): Promise<VaultIndex | undefined> {
  const none = createVaultIndex({ dimension, termsOf })
  if (!tiers.includes(1) || importance !== undefined) return none
  const partitionRef = { scope, session: partition.session, ...(audience && { audience }) }
  const ref = { ...partitionRef, space, dimension }
  const raw = await wholeOrPartialIndex(backend, ref, async () => none)
  return raw === none ? undefined : raw
}

const isReflection: Condition = { field: 'tier', op: 'gt', value: 1 }

/** The reflections of the window, each at its place in the order of time. */
async function loadReflectionIndex(
  { mongo }: RankingBackend,
  { scope, read }: DateSearchSource,
  query: Omit<RelevanceQuery, 'query'> & { embedder: Embedder },
): Promise<{ vaultIndex: VaultIndex; rows: Map<string, ListedRow> }> {
  const {
    window,
    embedder: { space, dimension },
    oldestFirst,
  } = query
  const vaultIndex = createVaultIndex({ dimension, termsOf })
  const reflections = await embeddedReflections(mongo, scope, { ...read, window, space })
  const placed = reflections.map(({ memory, row }) => ({
    ...memory,
    at: placeOfReflection(row, window, oldestFirst),
  }))
  await putInSlices(vaultIndex, placed)
  return { vaultIndex, rows: new Map(reflections.map(({ row }) => [row.id, row])) }
}

const toListedRow = (memory: Memory): ListedRow => ({
  ...memory,
  consolidated: false,
  covers: null,
})
