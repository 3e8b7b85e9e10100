import type { SearchRange } from '#shared/search/ranking/search-range.ts'

/** Turns further apart than this belong to different conversations. */
const conversationGapMs = 30 * 60_000
/** Turns of one role closer than this are bulk lines: a file without times is stored 1 ms apart. */
const bulkLineGapMs = 100

/** Weight of a row as context of later and earlier rows, by distance: answers follow questions. Measured. */
const forwardWeights = [1, 0.8, 0.5, 0.3]
const backwardWeights = [1, 0.5, 0.3]

/** How many rows before and after a row are its context. */
const rowsBeforeMax = forwardWeights.length - 1
const rowsAfterMax = backwardWeights.length - 1

/** Weight of `contextRow` as context of `row`, above 0 to 1. */
export function contextWeight(contextRow: number, row: number): number {
  return (
    (row > contextRow ? forwardWeights[row - contextRow] : backwardWeights[contextRow - row]) ?? 0
  )
}

/** First and last row of the context of a row: rows near it in the same conversation, and itself. */
export type AdjacentTurns = {
  firstContextRow(row: number): number
  lastContextRow(row: number): number
}

/** Whether a row and the next one are turns of one conversation. */
export function isFollowedByTurn(tierIndex: SearchRange['tierIndex'], row: number): boolean {
  if (tierIndex.isFact(row) || tierIndex.isFact(row + 1)) return false
  const gap = tierIndex.timeAt(row + 1) - tierIndex.timeAt(row)
  // Turns of a conversation are stored a millisecond apart: what shares a time was written down by date.
  if (gap === 0) return arePieces(tierIndex, row)
  const isBulk = gap < bulkLineGapMs && tierIndex.role(row) === tierIndex.role(row + 1)
  return gap <= conversationGapMs && !isBulk
}

/** Whether the message of a row goes on in the next one. */
function arePieces(tierIndex: SearchRange['tierIndex'], row: number): boolean {
  const [piece, next] = [tierIndex.piece(row), tierIndex.piece(row + 1)]
  return piece !== undefined && piece.message === next?.message && piece.number + 1 === next.number
}

/** For each row whether it and the next are of one conversation: 0 unknown, 1 no, 2 yes. */
let linkCache = new Uint8Array(0)

/** Valid until the next call. */
export function findAdjacentTurns({ tierIndex, first, end }: SearchRange): AdjacentTurns {
  if (linkCache.length < end - first) linkCache = new Uint8Array(end - first)
  linkCache.fill(0, 0, end - first)

  /** Whether a row and the next one are of one conversation; cached, as neighbours share the test. */
  function isSameConversation(row: number): boolean {
    const known = linkCache[row - first]!
    if (known > 0) return known === 2
    const linked = isFollowedByTurn(tierIndex, row)
    linkCache[row - first] = linked ? 2 : 1
    return linked
  }

  return {
    firstContextRow(row) {
      let contextRow = row
      while (
        contextRow > first &&
        row - contextRow < rowsBeforeMax &&
        isSameConversation(contextRow - 1)
      )
        contextRow--
      return contextRow
    },
    lastContextRow(row) {
      let contextRow = row
      while (
        contextRow + 1 < end &&
        contextRow - row < rowsAfterMax &&
        isSameConversation(contextRow)
      )
        contextRow++
      return contextRow
    },
  }
}
