import type { Steps } from '#shared/core/event-loop.ts'
import type { Calibration } from '#shared/domain/embedder.ts'
import type { Memory } from '#shared/domain/memory.ts'
import { copiesOfRows, scoreRows, type RankedRow } from '#shared/search/ranking/fusion.ts'
import { scoreFromCosine } from '#shared/search/ranking/ranges.ts'
import type { MessageSearch } from '#shared/search/ranking/rank-question.ts'
import type { Signals } from '#shared/search/ranking/signals.ts'
import { tuned } from '#shared/search/tuned.ts'

export type SearchHit = {
  memory: Memory
  /** 0 to 1, without the turns around it: see `scoreOf`. Without the floor in the order of the hits. */
  score: number
  /** Cosine of its vector and that of the query; undefined when the query has none. */
  similarity: number | undefined
  /** Ranking value: 0 and up. */
  relevance: number
  /** How well it fits the question; from 1 on it is relevant by itself. */
  strength: number
  /** Log odds that it answers the only question, where that is known. */
  evidence?: number | undefined
  signals: Signals
  /** Memories with its text, of which it is the newest; 1 where they are not counted. */
  copies: number
  /** The newest memory that says otherwise of the same thing. */
  supersededBy?: string | undefined
  /** The memories of these hits that it supersedes. */
  supersedes?: readonly string[] | undefined
  /** Position of its vault index among those searched. */
  indexNumber: number
}

/** Makes hits of the chosen rows, with exact cosines and the texts; without the floor by their scores. */
export function* toHits(
  chosen: readonly RankedRow[],
  { options, calibrationOf }: MessageSearch,
): Steps<SearchHit[]> {
  const { floor, everyRow } = options
  const isCertain =
    chosen.length <= tuned.evidence.weighedRowsMax &&
    chosen.slice(0, tuned.evidence.certainRowsMax).some(isCertainAnswer)
  const cosines = rescore(chosen, calibrationOf)
  const scores = scoreRows(chosen)
  const copies = floor || everyRow ? [] : yield* copiesOfRows(chosen)
  const hits = chosen.map(
    ({ range, row, relevance, strength, evidence, signals, newest }, i): SearchHit => ({
      memory: range.tierIndex.memory(row),
      score: scores[i]!,
      similarity: cosines[i],
      relevance,
      strength,
      evidence: isCertain ? evidence?.() : undefined,
      signals,
      copies: copies[i] ?? 1,
      indexNumber: range.indexNumber,
      supersededBy: newest?.range.tierIndex.memory(newest.row).id,
    }),
  )
  const olderByNewest = Map.groupBy(hits, hit => hit.supersededBy)
  const linkedHits =
    olderByNewest.size < 2 ? hits : hits.map(hit => withSuperseded(hit, olderByNewest))
  return floor ? linkedHits : linkedHits.sort((one, other) => other.score - one.score)
}

const isCertainAnswer = ({ evidence }: RankedRow): boolean =>
  (evidence?.() ?? -1) >= tuned.evidence.certain

function withSuperseded(
  hit: SearchHit,
  olderByNewest: ReadonlyMap<string | undefined, readonly SearchHit[]>,
): SearchHit {
  const older = olderByNewest.get(hit.memory.id)
  return older ? { ...hit, supersedes: older.map(({ memory }) => memory.id) } : hit
}

/**
 * Computes exact cosines of the chosen rows, which were ranked by approximate ones, and writes their scores into the
 * signals. @returns the cosines, in order
 */
function rescore(
  chosen: readonly RankedRow[],
  calibrationOf: (vector: Float32Array) => Calibration,
): (number | undefined)[] {
  const cosineOf = new Map<RankedRow, number>()
  for (const [vector, rowsOfQuestion] of Map.groupBy(chosen, row => row.vector)) {
    if (!vector) continue
    const calibration = calibrationOf(vector)
    for (const [{ tierIndex }, rowsOfRange] of Map.groupBy(rowsOfQuestion, ({ range }) => range)) {
      const positions = rowsOfRange.map(({ row }) => row)
      const cosines = tierIndex.cosines(vector, positions)
      for (const [i, row] of rowsOfRange.entries()) {
        row.signals.similarity = scoreFromCosine(cosines[i]!, calibration)
        cosineOf.set(row, cosines[i]!)
      }
    }
  }
  return chosen.map(row => cosineOf.get(row))
}
