import type { Embedder } from '#shared/domain/embedder.ts'
import type { Caller } from '#shared/access/caller.ts'
import { chronological } from '#shared/vault/read/date-search-chronological.ts'
import { byRelevance, type SourcesOfEmbedder } from '#shared/vault/read/date-search-by-relevance.ts'
import {
  windowStartAfter,
  comparePositions,
  windowEndBefore,
  type RequestedWindow,
  type TimelinePosition,
  type TimeWindow,
} from '#shared/vault/read/time-window.ts'
import type { MetadataFilter } from '#shared/domain/metadata.ts'
import type { Tier } from '#shared/domain/memory.ts'
import { allSourceIdsAt, resolveTimeWindow } from '#shared/vault/read/timeline.mongo.ts'
import { visibilityOf } from '#shared/domain/visibility.ts'
import { toSharedVaultScope } from '#shared/domain/member-scope.ts'
import { openSharedEmbedders } from '#shared/vault/base/shared-embedders.ts'
import { findSessionEpoch } from '#shared/vault/base/vault-changes.postgres.ts'
import { visiblePartition } from '#shared/vault/read/index-source.ts'
import type { DateSearchRow, DateSearchSource } from '#shared/vault/read/dated-row.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { QueryVectorCache } from '#shared/search/query/query-vector-cache.ts'
import type { VaultIndexes } from '#shared/search/index/vault-indexes.ts'
import type { NearestSearch } from '#shared/vault/read/nearest.ts'

export type DateSearchQuestion = {
  window: RequestedWindow
  session: string | null
  /** Ranks the rows of the window; without one they are returned in the order of time. */
  query: string | undefined
  /** Embedding model that names the vault space; without one all spaces are returned. */
  embeddings: string | undefined
  tiers: readonly Tier[]
  /** Lowest importance; unrated rows are left out whenever it is set. */
  importance: number | undefined
  /** Rows without such metadata are left out. */
  metadata?: MetadataFilter | undefined
  /** Clamped to 1,000 to 200,000. */
  maxTokens: number
  order: 'newest_first' | 'oldest_first'
}

export type DateSearchAnswer = {
  rows: DateSearchRow[]
  tokens: number
  /** There are more rows than fit. */
  truncated: boolean
  /** ISO times of the first and last row; when `truncated`, the end to continue from is a page position. */
  returned: { from: string; to: string } | null
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

/**
 * What happened in a span of time. Reflections belong to the period they cover: one that overlaps the
 * span is in it, at the end of its period or of the span, whichever is earlier. For a member of an
 * organization the result includes what they may see of its shared memory; the rest is never read.
 *
 * Rows are taken, in the order of time or best first, until the next one would exceed the budget; at
 * least one is. A search that continues from `returned` (to its `from` newest first, from its `to` oldest
 * first) returns what was left out: in the order of time every row exactly once.
 *
 * @throws Refusal `invalid` when `embeddings` names no known model, `upstream` when it does not answer,
 *   `unavailable` when a store is out of reach.
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
  const own = await ownSource(backend, caller, question, embedder)
  const shared = await sharedSources(backend, caller, question)
  const sources = [own, ...shared]
  const window = await resolveTimeWindow(backend.mongo, sources, question.window)
  const source =
    query === undefined || embedder === undefined
      ? chronological(backend, { sources, window, oldestFirst: question.order === 'oldest_first' })
      : byRelevance(backend, await groupByEmbedder(backend, caller, { embedder, own, shared }), {
          window,
          query,
        })
  const budget = Math.min(tokensMax, Math.max(tokensMin, maxTokens))
  const rows: DateSearchRow[] = []
  let tokens = 0
  let truncated = false
  for await (const row of source) {
    truncated =
      rows.length > 0 && (row === 'more' || rows.length === rowsMax || tokens + row.tokens > budget)
    if (truncated || row === 'more') break
    rows.push(row)
    tokens += row.tokens
  }
  const answered = { rows, continuedOrder: truncated ? question.order : null }
  const returned = await returnedRange(backend, sources, window, answered)
  return { rows, tokens, truncated, returned }
}

async function ownSource(
  { postgres }: DateSearchBackend,
  { scope }: Pick<Caller, 'scope'>,
  { session, tiers, importance, metadata }: DateSearchQuestion,
  embedder: Embedder | undefined,
): Promise<DateSearchSource> {
  const sessionEpoch = await findSessionEpoch(postgres.query, scope, session)
  const partition = { session, sessionEpoch }
  const read = { partition, tiers, importance, metadata, space: embedder?.space }
  return { scope, read, source: session === null ? 'core' : 'session' }
}

/** Shared memories are raw and unrated; they are returned from every vault space. */
async function sharedSources(
  { postgres }: DateSearchBackend,
  { memberScope }: Pick<Caller, 'memberScope'>,
  { tiers, importance, metadata }: DateSearchQuestion,
): Promise<DateSearchSource[]> {
  if (importance !== undefined) return []
  if (!memberScope || !tiers.includes(1)) return []
  const scope = toSharedVaultScope(memberScope)
  const audience = visibilityOf(memberScope)
  const partition = await visiblePartition(postgres, { scope, session: null, audience })
  if (partition.tagSets?.length === 0) return []
  const read = { partition, tiers: [1] as const, importance, metadata, space: undefined }
  return [{ scope, read, source: 'org', audience }]
}

type SearchedSources = {
  embedder: Embedder
  own: DateSearchSource
  shared: readonly DateSearchSource[]
}

/** Groups the sources by the embedder whose vectors they have, as `recall` does. */
async function groupByEmbedder(
  backend: DateSearchBackend,
  { memberScope }: Pick<Caller, 'memberScope'>,
  { embedder, own, shared }: SearchedSources,
): Promise<SourcesOfEmbedder[]> {
  if (!memberScope || shared.length === 0) return [{ embedder, sources: [own], isOptional: false }]
  const [usual, ...former] = await openSharedEmbedders(backend, memberScope.orgSpace)
  const later = former.map(one => ({ embedder: one, sources: shared, isOptional: true }))
  if (usual.space === embedder.space) {
    return [{ embedder, sources: [own, ...shared], isOptional: false }, ...later]
  }
  const separately = { embedder: usual, sources: shared, isOptional: false }
  return [{ embedder, sources: [own], isOptional: false }, separately, ...later]
}

async function returnedRange(
  { mongo }: DateSearchBackend,
  sources: readonly DateSearchSource[],
  window: TimeWindow,
  {
    rows,
    continuedOrder,
  }: { rows: readonly DateSearchRow[]; continuedOrder: DateSearchQuestion['order'] | null },
): Promise<DateSearchAnswer['returned']> {
  const positions = rows.map(({ position }) => position).toSorted(comparePositions)
  const [first, last] = [positions[0], positions.at(-1)]
  if (!first || !last) return null
  const range = { from: isoOf(first), to: isoOf(last) }
  if (continuedOrder === null) return range

  const edge = continuedOrder === 'newest_first' ? first : last
  const { from, to, includeOverlapping } = window
  const moments = { ...window, from: { at: from.at }, to: { at: to.at } }
  const row = (await allSourceIdsAt(mongo, sources, moments, edge.at)).indexOf(edge.id)
  if (continuedOrder === 'oldest_first') return { ...range, to: windowStartAfter(edge, row) }
  return { ...range, from: windowEndBefore(edge, row, includeOverlapping && edge.at === to.at) }
}

const isoOf = ({ at }: TimelinePosition): string => new Date(at).toISOString()
