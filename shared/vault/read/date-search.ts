import type { Embedder } from '#shared/domain/embedder.ts'
import type { Caller } from '#shared/access/caller.ts'
import { dumped } from '#shared/vault/read/time-dump.ts'
import { ranked, type RankedStrands } from '#shared/vault/read/time-rank.ts'
import {
  beginAfter,
  byPosition,
  endBefore,
  type AskedWindow,
  type Position,
  type TimeWindow,
} from '#shared/vault/read/time-window.ts'
import type { Tier } from '#shared/domain/memory.ts'
import { idsOfAll, windowOf } from '#shared/vault/read/timeline.mongo.ts'
import { audienceOf } from '#shared/domain/visibility.ts'
import { sharedVaultOf } from '#shared/domain/member-scope.ts'
import { sharedEmbedders } from '#shared/vault/base/shared-embedders.ts'
import { sessionEpochOf } from '#shared/vault/base/changes.postgres.ts'
import { placeSeen } from '#shared/vault/read/index-source.ts'
import type { DatedRow, DatedStrand } from '#shared/vault/read/dated-row.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { QueryVectors } from '#shared/search/query/query-vectors.ts'
import type { Images } from '#shared/search/index/vault-indexes.ts'
import type { Nearest } from '#shared/vault/read/nearest.ts'

export type DateQuestion = {
  window: AskedWindow
  session: string | null
  /** Ranks the window by it; without one the window is told in order. */
  query: string | undefined
  /** Embedding model that names the vault space; without one all spaces are told. */
  embeddings: string | undefined
  tiers: readonly Tier[]
  /** Lowest importance; unrated rows are left out whenever it is set. */
  importance: number | undefined
  /** Brought between 1,000 and 200,000. */
  maxTokens: number
  order: 'newest_first' | 'oldest_first'
}

export type DateAnswer = {
  rows: DatedRow[]
  tokens: number
  /** More is there than fitted. */
  truncated: boolean
  /** ISO times, as far as the rows reach; where more is there, the place to go on from. */
  returned: { from: string; to: string } | null
}

type DateSearching = Stores & {
  embedders: Embedders
  queryVectors: QueryVectors
  images: Images
  nearest: Nearest
  now: () => number
}

const tokensMin = 1_000
const tokensMax = 200_000
/** 200,000 tokens of one-word rows would be an answer of 50 MB. */
const rowsMax = 5_000

/**
 * What happened in a span of time. Reflections belong to the period they are about: one that overlaps
 * the span is in it, at the end of its period or of the span, whichever is earlier. For a member of an
 * organization what they may see of its shared memory is told as well; what they may not see is never
 * read.
 *
 * Rows are taken, in the order of time or best first, until the next one would exceed the budget; at
 * least one is. Going on from `returned` (to its `from` newest first, from its `to` oldest first) gives
 * what was left out: in the order of time every row exactly once.
 *
 * @throws Refusal `invalid` when `embeddings` names no known model, `upstream` when it does not answer,
 *   `unavailable` when a store is out of reach.
 */
export async function searchDates(
  backend: DateSearching,
  caller: Pick<Caller, 'scope' | 'member'>,
  question: DateQuestion,
): Promise<DateAnswer> {
  const { query, maxTokens, embeddings } = question
  const embedder =
    query === undefined && embeddings === undefined
      ? undefined
      : await backend.embedders.get(embeddings)
  const own = await ownStrand(backend, caller, question, embedder)
  const shared = await sharedStrands(backend, caller, question)
  const strands = [own, ...shared]
  const window = await windowOf(backend.mongo, strands, question.window)
  const source =
    query === undefined || embedder === undefined
      ? dumped(backend, { strands, window, oldestFirst: question.order === 'oldest_first' })
      : ranked(backend, await partsOf(backend, caller, { embedder, own, shared }), {
          window,
          query,
        })
  const budget = Math.min(tokensMax, Math.max(tokensMin, maxTokens))
  const rows: DatedRow[] = []
  let tokens = 0
  let truncated = false
  for await (const row of source) {
    truncated =
      rows.length > 0 && (row === 'more' || rows.length === rowsMax || tokens + row.tokens > budget)
    if (truncated || row === 'more') break
    rows.push(row)
    tokens += row.tokens
  }
  const told = { rows, goesOn: truncated ? question.order : null }
  const returned = await returnedOf(backend, strands, window, told)
  return { rows, tokens, truncated, returned }
}

async function ownStrand(
  { postgres }: DateSearching,
  { scope }: Pick<Caller, 'scope'>,
  { session, tiers, importance }: DateQuestion,
  embedder: Embedder | undefined,
): Promise<DatedStrand> {
  const sessionEpoch = await sessionEpochOf(postgres.query, scope, session)
  const place = { session, sessionEpoch }
  const read = { place, tiers, importance, space: embedder?.space }
  return { scope, read, source: session === null ? 'core' : 'session' }
}

/** What a team shares is raw and unrated; it is told whatever space it is in. */
async function sharedStrands(
  { postgres }: DateSearching,
  { member }: Pick<Caller, 'member'>,
  { tiers, importance }: DateQuestion,
): Promise<DatedStrand[]> {
  if (!member || !tiers.includes(1) || importance !== undefined) return []
  const scope = sharedVaultOf(member)
  const audience = audienceOf(member)
  const place = await placeSeen(postgres, { scope, session: null, audience })
  if (place.tagSets?.length === 0) return []
  const read = { place, tiers: [1] as const, importance, space: undefined }
  return [{ scope, read, source: 'org', audience }]
}

type Found = { embedder: Embedder; own: DatedStrand; shared: readonly DatedStrand[] }

/** Each strand with those who find what is in it, as `recall` goes about it. */
async function partsOf(
  backend: DateSearching,
  { member }: Pick<Caller, 'member'>,
  { embedder, own, shared }: Found,
): Promise<RankedStrands[]> {
  if (!member || shared.length === 0) return [{ embedder, strands: [own], spare: false }]
  const [usual, ...former] = await sharedEmbedders(backend, member.orgSpace)
  const later = former.map(one => ({ embedder: one, strands: shared, spare: true }))
  if (usual.space === embedder.space) {
    return [{ embedder, strands: [own, ...shared], spare: false }, ...later]
  }
  const separately = { embedder: usual, strands: shared, spare: false }
  return [{ embedder, strands: [own], spare: false }, separately, ...later]
}

async function returnedOf(
  { mongo }: DateSearching,
  strands: readonly DatedStrand[],
  window: TimeWindow,
  { rows, goesOn }: { rows: readonly DatedRow[]; goesOn: DateQuestion['order'] | null },
): Promise<DateAnswer['returned']> {
  const positions = rows.map(({ position }) => position).toSorted(byPosition)
  const [first, last] = [positions[0], positions.at(-1)]
  if (!first || !last) return null
  const whole = { from: isoOf(first), to: isoOf(last) }
  if (goesOn === null) return whole

  const edge = goesOn === 'newest_first' ? first : last
  const { from, to, beyond } = window
  const moments = { from: { at: from.at }, to: { at: to.at }, beyond }
  const row = (await idsOfAll(mongo, strands, moments, edge.at)).indexOf(edge.id)
  if (goesOn === 'oldest_first') return { ...whole, to: beginAfter(edge, row) }
  return { ...whole, from: endBefore(edge, row, beyond && edge.at === to.at) }
}

const isoOf = ({ at }: Position): string => new Date(at).toISOString()
