import type { Embedder } from '#shared/domain/embedder.ts'
import type { Caller } from '#shared/access/caller.ts'
import { chronological } from '#shared/vault/read/lists/date-search-chronological.ts'
import {
  byRelevance,
  type SourcesOfEmbedder,
} from '#shared/vault/read/lists/date-search-by-relevance.ts'
import { comparePositions, type TimeWindow } from '#shared/vault/read/lists/time-window.ts'
import type { MetadataFilter } from '#shared/domain/metadata.ts'
import type { Tier } from '#shared/domain/memory.ts'
import { visibilityOf } from '#shared/domain/visibility.ts'
import { toSharedVaultScope } from '#shared/domain/member-scope.ts'
import { openSharedEmbedders } from '#shared/vault/base/shared-embedders.ts'
import { findSessionEpoch } from '#shared/vault/base/vault-changes.postgres.ts'
import { visiblePartition } from '#shared/vault/read/search/index-source.ts'
import type { DateSearchRow, DateSearchSource } from '#shared/vault/read/lists/dated-row.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { QueryVectorCache } from '#shared/search/query/query-vector-cache.ts'
import type { VaultIndexes } from '#shared/search/index/vault-indexes.ts'
import type { NearestSearch } from '#shared/vault/read/search/nearest.ts'

export type DateSearchQuestion = {
  window: TimeWindow
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
  /**
   * ISO times of the first and last row, those of the window when there is none; when `truncated`, the end to
   * continue from is a millisecond beyond the last row of the page.
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

/**
 * What happened in a span of time. Reflections belong to the period they cover: one that overlaps the
 * span is in it (see `date-search-chronological.ts` for its place). For a member of an
 * organization the result includes what they may see of its shared memory; the rest is never read.
 *
 * Rows are taken, in the order of time or best first, until the next one would exceed the budget; at
 * least one is. In the order of time a page ends between two milliseconds: it exceeds its budget by what is
 * left of the rows of one millisecond. A search that continues from `returned` (to its `from` newest first, from
 * its `to` oldest first) returns what was left out: in the order of time every row exactly once.
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
  const { window } = question
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
    if (row === 'more') {
      truncated = rows.length > 0
      break
    }
    const isFull = rows.length >= rowsMax || tokens + row.tokens > budget
    truncated =
      isFull && rows.length > 0 && (query !== undefined || isAtAnotherTime(row, rows.at(-1)!))
    if (truncated) break
    rows.push(row)
    tokens += row.tokens
  }
  const returned = returnedRange(window, rows, truncated ? question.order : null)
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

const isAtAnotherTime = (one: DateSearchRow, other: DateSearchRow): boolean =>
  one.position.at !== other.position.at

function returnedRange(
  { from, to }: TimeWindow,
  rows: readonly DateSearchRow[],
  continuedOrder: DateSearchQuestion['order'] | null,
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
    from: new Date(continuedOrder === 'newest_first' ? first - 1 : first).toISOString(),
    to: new Date(continuedOrder === 'oldest_first' ? last + 1 : last).toISOString(),
  }
}
