import type { Block } from '#shared/recall/block.ts'

/** Turns further apart than this belong to different conversations. */
const conversationGapMs = 30 * 60_000

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

/** The first row that lends to this one: near it, in the same conversation, not before `first`. */
export function firstLender(block: Block, row: number, first: number): number {
  let lender = row
  while (lender > first && row - lender < lookBack && isTogether(block, lender - 1)) lender--
  return lender
}

/** The last row that lends to this one, before `end`. */
export function lastLender(block: Block, row: number, end: number): number {
  let lender = row
  while (lender + 1 < end && lender - row < lookAhead && isTogether(block, lender)) lender++
  return lender
}

/** Whether a row and the next one were said in one conversation. */
function isTogether(block: Block, row: number): boolean {
  return block.at(row + 1) - block.at(row) <= conversationGapMs && !block.isFact(row)
}
