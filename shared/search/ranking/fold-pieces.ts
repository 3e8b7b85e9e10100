import type { ScoredRow } from '#shared/search/ranking/score-candidates.ts'

/** Pieces of a document that are further apart tell of other things. */
const distanceMax = 3

/**
 * Leaves out the pieces of a long message beside the best one of them, as a block for a prompt wants it. Argument
 * and result are in order of relevance.
 */
export function foldPieces<Row extends Pick<ScoredRow, 'range' | 'row'>>(
  ranked: readonly Row[],
): Row[] {
  /** Numbers of the pieces that are kept, by message. */
  const kept = new Map<number, number[]>()
  return ranked.filter(({ range, row }) => {
    const piece = range.tierIndex.piece(row)
    if (!piece) return true
    const numbers = kept.get(piece.message) ?? []
    kept.set(piece.message, numbers)
    if (numbers.some(number => Math.abs(number - piece.number) <= distanceMax)) return false
    numbers.push(piece.number)
    return true
  })
}
