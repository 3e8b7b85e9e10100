import type { SearchRange } from '#shared/search/ranking/ranges.ts'
import type { WordScores } from '#shared/search/ranking/score-words.ts'

/** Turns further apart than this belong to different conversations. */
const conversationGapMs = 30 * 60_000
/** Turns of one role closer than this are lines of a file: without times these are stored 1 ms apart. */
const bulkLineGapMs = 100

/** Weight of a row as context of later and earlier rows, by distance: answers follow questions. Measured. */
const forwardWeights = [1, 0.8, 0.5, 0.3]
const backwardWeights = [1, 0.5, 0.3]

/** How many rows before and after a row are its context. */
const rowsBeforeMax = forwardWeights.length - 1
const rowsAfterMax = backwardWeights.length - 1

/** Weight of `contextRow` as context of `row`, above 0 to 1. */
function contextWeight(contextRow: number, row: number): number {
  return (
    (row > contextRow ? forwardWeights[row - contextRow] : backwardWeights[contextRow - row]) ?? 0
  )
}

/** The context of a row: rows near it in the same conversation, and itself. */
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

/** Whether each row of an index and the next are of one conversation: 0 unknown, 1 no, 2 yes; at a version of it. */
const linksByIndex = new WeakMap<SearchRange['tierIndex'], { version: number; known: Uint8Array }>()

function linksOf(tierIndex: SearchRange['tierIndex']): Uint8Array {
  const { version, count } = tierIndex
  const links = linksByIndex.get(tierIndex)
  if (links?.version === version) return links.known
  const known = new Uint8Array(count)
  linksByIndex.set(tierIndex, { version, known })
  return known
}

/** Finds the context of rows of a range, while the index does not change. */
export function findAdjacentTurns({ tierIndex, first, end }: SearchRange): AdjacentTurns {
  const links = linksOf(tierIndex)

  function isSameConversation(row: number): boolean {
    const link = links[row]!
    if (link > 0) return link === 2
    const linked = isFollowedByTurn(tierIndex, row)
    links[row] = linked ? 2 : 1
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

/** Positions of the rows of one context, and their weights. */
const nearPositions = new Uint32Array(rowsBeforeMax + 1 + rowsAfterMax)
const nearWeights = new Float64Array(nearPositions.length)

/**
 * Scores each row by the turns around it: an answer often lacks the words of its question, which the turn before
 * has. `rows` ascends and matches `similarities`.
 */
export function scoreContext(
  { firstContextRow, lastContextRow }: AdjacentTurns,
  wordScores: WordScores,
  rows: Uint32Array,
  similarities: Float32Array,
): {
  /** Score of the words that a turn near a row has and the row lacks, discounted by distance. */
  words: Float32Array
  /** How far the similarity of turns near a row, discounted by distance, exceeds its own. */
  similarity: Float32Array
} {
  const words = new Float32Array(rows.length)
  const similarity = new Float32Array(rows.length)
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i]!
    const from = firstContextRow(row)
    const to = lastContextRow(row)
    if (from === to) continue
    words[i] = contextWordScore(wordScores, row, from, to)
    similarity[i] = contextSimilarityScore(rows, similarities, i, from, to)
  }
  return { words, similarity }
}

function contextWordScore(
  { byConcept, found, positions, concepts }: WordScores,
  row: number,
  from: number,
  to: number,
): number {
  const own = positions.of(row)
  let ofOthers = 0
  let near = 0
  for (let contextRow = from; contextRow <= to; contextRow++) {
    if (contextRow === row) continue
    const position = positions.of(contextRow)
    ofOthers |= found[position]!
    nearPositions[near] = position
    nearWeights[near++] = contextWeight(contextRow, row)
  }
  const { length } = concepts
  const ofOwn = found[own]!
  let sum = 0
  for (let rest = ofOthers; rest !== 0; rest &= rest - 1) {
    const concept = 31 - Math.clz32(rest & -rest)
    const bit = 1 << concept
    const { maxScore } = concepts[concept]!
    const ownScore = ofOwn & bit ? Math.min(maxScore, byConcept[own * length + concept]!) : 0
    let best = ownScore
    for (let i = 0; i < near; i++) {
      const position = nearPositions[i]!
      if ((found[position]! & bit) === 0) continue
      const score = Math.min(maxScore, byConcept[position * length + concept]!) * nearWeights[i]!
      if (score > best) best = score
    }
    sum += best - ownScore
  }
  return sum
}

function contextSimilarityScore(
  rows: Uint32Array,
  similarities: Float32Array,
  index: number,
  from: number,
  to: number,
): number {
  const row = rows[index]!
  const own = similarities[index]!
  let best = own
  for (let i = index - 1; i >= 0 && rows[i]! >= from; i--) {
    best = Math.max(best, similarities[i]! * contextWeight(rows[i]!, row))
  }
  for (let i = index + 1; i < rows.length && rows[i]! <= to; i++) {
    best = Math.max(best, similarities[i]! * contextWeight(rows[i]!, row))
  }
  return best - own
}
