import type { ContextMemory } from '#shared/domain/context-block.ts'
import { matchReasons } from '#shared/search/ranking/signals.ts'
import {
  marksOf,
  type RecallTrace,
  type TracedBlock,
} from '#shared/vault/read/traces/call-trace.ts'
import type { DateSearchRow } from '#shared/vault/read/lists/dated-row.ts'
import type { PreparedContext } from '#shared/vault/read/prepare/prepare.ts'
import type { RecalledMemory } from '#shared/vault/read/search/recall.ts'

const presentRanking = ({
  score,
  signals,
}: {
  score: number
  signals: Parameters<typeof matchReasons>[0]
}): TracedBlock['ranking'][number] => ({
  relevance: Math.round(score * 1e4) / 1e4,
  why: matchReasons(signals),
})

/** The block that a context was rendered to. */
export function blockOfContext(
  { context, ids, lines, at, ranking }: PreparedContext,
  turn: number | null,
  place: number,
): TracedBlock {
  // The first line opens the block.
  const told = context!.split('\n').slice(1, 1 + ids.length)
  return { turn, place, at, ids, lines, marks: marksOf(told), ranking: ranking.map(presentRanking) }
}

type RecallPart = Omit<RecallTrace, 'embeddings' | 'revision' | 'asOf'>

/** What was prepared for a prompt. */
export const traceOfContext = (prepared: PreparedContext): RecallPart => ({
  status: prepared.memories === 0 ? 'none' : 'ok',
  confidence: prepared.confidence,
  abstained: prepared.abstained,
  blocks: prepared.memories === 0 ? [] : [blockOfContext(prepared, null, 0)],
  tokens: prepared.contextTokens,
  leftOutMemories: prepared.leftOut,
})

/** The rows of a search, best first. @param at the moment that the ages of its lines are counted from */
export const traceOfResults = (rows: readonly RecalledMemory[], at: number): RecallPart =>
  traceOfRows(
    rows.map(({ memory }) => memory),
    rows.map(presentRanking),
    at,
  )

/** The rows of a span of time; those of one without a query were not ranked. */
export const traceOfDatedRows = (rows: readonly DateSearchRow[], at: number): RecallPart =>
  traceOfRows(
    rows,
    rows.flatMap(({ hit }) => (hit ? [presentRanking(hit)] : [])),
    at,
  )

/** Rows of a search that its trace names. */
const rowsMax = 200

function traceOfRows(
  rows: readonly ContextMemory[],
  ranking: TracedBlock['ranking'],
  at: number,
): RecallPart {
  const named = rows.slice(0, rowsMax)
  const block: TracedBlock = {
    turn: null,
    place: 0,
    at,
    ids: named.map(({ id }) => id),
    lines: [],
    marks: marksOf(named.map(({ text }) => text)),
    isByText: true,
    ranking: ranking.slice(0, rowsMax),
  }
  return {
    status: rows.length > 0 ? 'ok' : 'none',
    memories: rows.length,
    tokens: rows.reduce((sum, row) => sum + row.tokens, 0),
    blocks: rows.length > 0 ? [block] : [],
  }
}
