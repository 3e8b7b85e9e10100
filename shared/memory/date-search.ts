import type { Backend } from '#shared/backend.ts'
import type { Caller } from '#shared/key/caller.ts'
import { dumped } from '#shared/memory/time-dump.ts'
import { ranked } from '#shared/memory/time-rank.ts'
import {
  beginAfter,
  byPosition,
  endBefore,
  type AskedWindow,
  type Position,
} from '#shared/memory/time-window.ts'
import type { Tier } from '#shared/memory/memory.ts'
import type { ListedRow } from '#shared/mongo/listing.ts'
import { idsAt, windowOf, type TimelineRead } from '#shared/mongo/timeline.ts'
import { sessionEpochOf } from '#shared/postgres/changes.ts'

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

/** A row of a window, where it stands in it, and how near it is to the query. */
export type DatedRow = ListedRow & { position: Position; score?: number }

export type DateAnswer = {
  rows: DatedRow[]
  tokens: number
  /** More is there than fitted. */
  truncated: boolean
  /** ISO times, as far as the rows reach; where more is there, the place to go on from. */
  returned: { from: string; to: string } | null
}

type DateSearching = Pick<
  Backend,
  'mongo' | 'postgres' | 'embedders' | 'queryVectors' | 'images' | 'nearest' | 'now'
>

const tokensMin = 1_000
const tokensMax = 200_000
/** 200,000 tokens of one-word rows would be an answer of 50 MB. */
const rowsMax = 5_000

/**
 * What happened in a span of time. Reflections belong to the period they are about: one that overlaps
 * the span is in it, at the end of its period or of the span, whichever is earlier.
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
  { scope }: Pick<Caller, 'scope'>,
  question: DateQuestion,
): Promise<DateAnswer> {
  const { query, maxTokens, session, embeddings, tiers, importance } = question
  const sessionEpoch = await sessionEpochOf(backend.postgres.query, scope, session)
  const embedder =
    query === undefined && embeddings === undefined
      ? undefined
      : await backend.embedders.get(embeddings)
  const place = { session, sessionEpoch }
  const asked = { place, tiers, importance, space: embedder?.space }
  const read = { ...asked, window: await windowOf(backend.mongo, scope, question.window, asked) }
  const source =
    query === undefined || embedder === undefined
      ? dumped(backend, scope, { ...read, oldestFirst: question.order === 'oldest_first' })
      : ranked(backend, scope, { ...read, query, embedder })
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
  const returned = await returnedOf(backend, scope, read, {
    rows,
    goesOn: truncated ? question.order : null,
  })
  return { rows, tokens, truncated, returned }
}

async function returnedOf(
  { mongo }: DateSearching,
  scope: Caller['scope'],
  read: TimelineRead,
  { rows, goesOn }: { rows: readonly DatedRow[]; goesOn: DateQuestion['order'] | null },
): Promise<DateAnswer['returned']> {
  const positions = rows.map(({ position }) => position).toSorted(byPosition)
  const [first, last] = [positions[0], positions.at(-1)]
  if (!first || !last) return null
  const whole = { from: isoOf(first), to: isoOf(last) }
  if (goesOn === null) return whole

  const edge = goesOn === 'newest_first' ? first : last
  const { from, to, beyond } = read.window
  const moment = { ...read, window: { from: { at: from.at }, to: { at: to.at }, beyond } }
  const row = (await idsAt(mongo, scope, moment, edge.at)).indexOf(edge.id)
  if (goesOn === 'oldest_first') return { ...whole, to: beginAfter(edge, row) }
  return { ...whole, from: endBefore(edge, row, beyond && edge.at === to.at) }
}

const isoOf = ({ at }: Position): string => new Date(at).toISOString()
