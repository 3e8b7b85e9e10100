import type { Place } from '#shared/search/ranking/source-position.ts'

/** Turns further apart than this belong to different conversations. */
const conversationGapMs = 30 * 60_000
/** Nobody says two things so soon after each other: lines of a file without times are put 1 ms apart. */
const listGapMs = 100

/** What a row lends to those after and before it: answers follow their questions. Measured. */
const lendingForward = [1, 0.8, 0.5, 0.3]
const lendingBack = [1, 0.5, 0.3]

/** How far a row looks for lenders before it, and after it. */
const lookBack = lendingForward.length - 1
const lookAhead = lendingBack.length - 1

/** What `lender` is worth to `row`, over 0 to 1. */
export function lending(lender: number, row: number): number {
  return (row > lender ? lendingForward[row - lender] : lendingBack[lender - row]) ?? 0
}

/** Which rows of a place lend to a row: those near it in the same conversation, itself among them. */
export type Neighbours = {
  firstLender(row: number): number
  lastLender(row: number): number
}

/** For each row whether the next one belongs to it: 0 not asked yet, 1 no, 2 yes. */
let links = new Uint8Array(0)

/** Good until the next ones are asked for. */
export function neighboursIn({ block, first, end }: Place): Neighbours {
  if (links.length < end - first) links = new Uint8Array(end - first)
  links.fill(0, 0, end - first)

  /** Whether a row and the next one were said in one conversation. Rows near each other ask the same. */
  function isTogether(row: number): boolean {
    const known = links[row - first]!
    if (known > 0) return known === 2
    const gap = block.at(row + 1) - block.at(row)
    const isList = gap > 0 && gap < listGapMs && block.role(row) === block.role(row + 1)
    const together = gap <= conversationGapMs && !isList && !block.isFact(row)
    links[row - first] = together ? 2 : 1
    return together
  }

  return {
    firstLender(row) {
      let lender = row
      while (lender > first && row - lender < lookBack && isTogether(lender - 1)) lender--
      return lender
    },
    lastLender(row) {
      let lender = row
      while (lender + 1 < end && lender - row < lookAhead && isTogether(lender)) lender++
      return lender
    },
  }
}
