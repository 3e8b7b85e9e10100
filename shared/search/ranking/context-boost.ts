import { contextWeight, type AdjacentTurns } from '#shared/search/ranking/adjacent-turns.ts'
import type { SearchRange } from '#shared/search/ranking/search-range.ts'
import type { WordScores } from '#shared/search/ranking/score-words.ts'

export type ContextScores = {
  /** Score of the words that a row lacks and a turn near it has, discounted by distance. */
  words: Float32Array
  /** How far the similarity of turns near a row, discounted by distance, exceeds its own. */
  similarity: Float32Array
}

/**
 * Scores each row by the turns around it: an answer often lacks the words of its question, which
 * are in the turn before. `rows` ascends and matches `similarities`.
 */
export function scoreContext(
  { first }: SearchRange,
  { firstContextRow, lastContextRow }: AdjacentTurns,
  wordScores: WordScores,
  rows: Uint32Array,
  similarities: Float32Array,
): ContextScores {
  const words = new Float32Array(rows.length)
  const similarity = new Float32Array(rows.length)
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i]!
    const from = firstContextRow(row)
    const to = lastContextRow(row)
    if (from === to) continue
    words[i] = contextWordScore(wordScores, row - first, from - first, to - first)
    similarity[i] = contextSimilarityScore(rows, similarities, i, from, to)
  }
  return { words, similarity }
}

/** @param row By distance from the first row of the range, as `from` and `to`. */
function contextWordScore(
  { byConcept, rowCount, concepts }: WordScores,
  row: number,
  from: number,
  to: number,
): number {
  let sum = 0
  for (let concept = 0; concept < concepts.length; concept++) {
    const offset = concept * rowCount
    const { maxScore } = concepts[concept]!
    const own = Math.min(maxScore, byConcept[offset + row]!)
    let best = own
    for (let contextRow = from; contextRow <= to; contextRow++) {
      const score = byConcept[offset + contextRow]!
      if (score > best)
        best = Math.max(best, Math.min(maxScore, score) * contextWeight(contextRow, row))
    }
    sum += best - own
  }
  return sum
}

/** Only candidates have a similarity. */
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
