import type { SearchRange } from '#shared/search/ranking/search-range.ts'

/** Turns further apart than this belong to different conversations. */
const conversationGapMs = 30 * 60_000
/** Nobody says two things so soon after each other: lines of a file without times are put 1 ms apart. */
const bulkLineGapMs = 100

/** What a row lends to those after and before it: answers follow their questions. Measured. */
const forwardWeights = [1, 0.8, 0.5, 0.3]
const backwardWeights = [1, 0.5, 0.3]

/** How far a row looks for lenders before it, and after it. */
const rowsBeforeMax = forwardWeights.length - 1
const rowsAfterMax = backwardWeights.length - 1

/** What `lender` is worth to `row`, over 0 to 1. */
export function contextWeight(contextRow: number, row: number): number {
  return (
    (row > contextRow ? forwardWeights[row - contextRow] : backwardWeights[contextRow - row]) ?? 0
  )
}

/** Which rows of a place lend to a row: those near it in the same conversation, itself among them. */
export type AdjacentTurns = {
  firstContextRow(row: number): number
  lastContextRow(row: number): number
}

/** For each row whether the next one belongs to it: 0 not asked yet, 1 no, 2 yes. */
let linkCache = new Uint8Array(0)

/** Good until the next ones are asked for. */
export function findAdjacentTurns({ tierIndex, first, end }: SearchRange): AdjacentTurns {
  if (linkCache.length < end - first) linkCache = new Uint8Array(end - first)
  linkCache.fill(0, 0, end - first)

  /** Whether a row and the next one were said in one conversation. Rows near each other ask the same. */
  function isSameConversation(row: number): boolean {
    const known = linkCache[row - first]!
    if (known > 0) return known === 2
    const gap = tierIndex.timeAt(row + 1) - tierIndex.timeAt(row)
    const isList = gap > 0 && gap < bulkLineGapMs && tierIndex.role(row) === tierIndex.role(row + 1)
    const linked = gap <= conversationGapMs && !isList && !tierIndex.isFact(row)
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
