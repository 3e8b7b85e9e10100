import type { ScoredRow } from '#shared/search/ranking/score-candidates.ts'
import type { SearchRange } from '#shared/search/ranking/search-range.ts'

/** Pieces are cut at 512 tokens: two that follow each other would not have fitted into one. */
const twoPiecesTokens = 500
/** Pieces of a document that are further apart tell of other things. */
const distanceMax = 3

/**
 * Leaves out the pieces of a long message beside the best one of them. Argument and result are in order of
 * relevance.
 */
export function foldPieces<Row extends Pick<ScoredRow, 'range' | 'row'>>(
  ranked: readonly Row[],
): Row[] {
  const kept = new Map<SearchRange, Set<number>>()
  return ranked.filter(({ range, row }) => {
    if (!sharesTime(range, row)) return true
    const rows = kept.get(range) ?? new Set()
    kept.set(range, rows)
    for (let distance = 1; distance <= distanceMax; distance++) {
      if (rows.has(row - distance) && arePieces(range, row - distance, row)) return false
      if (rows.has(row + distance) && arePieces(range, row, row + distance)) return false
    }
    rows.add(row)
    return true
  })
}

/** Pieces follow each other at one time; most rows are alone at theirs. */
const sharesTime = ({ tierIndex, first, end }: SearchRange, row: number): boolean => {
  const at = tierIndex.timeAt(row)
  return (
    (row > first && tierIndex.timeAt(row - 1) === at) ||
    (row + 1 < end && tierIndex.timeAt(row + 1) === at)
  )
}

/** Whether two rows, and all between them, are pieces of one message. */
function arePieces({ tierIndex }: SearchRange, first: number, last: number): boolean {
  if (tierIndex.timeAt(first) !== tierIndex.timeAt(last)) return false
  for (let row = first; row < last; row++) if (!isContinued(tierIndex, row)) return false
  return true
}

/** Whether the message of a row goes on in the next one. */
const isContinued = (tierIndex: SearchRange['tierIndex'], row: number): boolean =>
  !tierIndex.isFact(row) &&
  tierIndex.role(row) === tierIndex.role(row + 1) &&
  tierIndex.speaker(row) === tierIndex.speaker(row + 1) &&
  tierIndex.tokens(row) + tierIndex.tokens(row + 1) > twoPiecesTokens
