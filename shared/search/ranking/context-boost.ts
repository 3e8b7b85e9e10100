import { lending, type Neighbours } from '#shared/search/ranking/adjacent-turns.ts'
import type { Place } from '#shared/search/ranking/source-position.ts'
import type { WordTable } from '#shared/search/ranking/word-table.ts'

export type Lent = {
  /** Worth of the words a row lacks and a turn near it has, discounted by distance. */
  words: Float32Array
  /** How much likelier a row is by what was said near it than by itself. */
  similarity: Float32Array
}

/**
 * What the turns around each row lend it: an answer often lacks the words of its question, which
 * were said one turn before. `rows` ascends; `similarities` are theirs.
 */
export function lentTo(
  { first }: Place,
  { firstLender, lastLender }: Neighbours,
  table: WordTable,
  rows: Uint32Array,
  similarities: Float32Array,
): Lent {
  const words = new Float32Array(rows.length)
  const similarity = new Float32Array(rows.length)
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i]!
    const from = firstLender(row)
    const to = lastLender(row)
    if (from === to) continue
    words[i] = lentWorth(table, row - first, from - first, to - first)
    similarity[i] = lentSimilarity(rows, similarities, i, from, to)
  }
  return { words, similarity }
}

/** Rows by their distance from the place's first. */
function lentWorth(
  { byConcept, rows, concepts }: WordTable,
  row: number,
  from: number,
  to: number,
): number {
  let sum = 0
  for (let concept = 0; concept < concepts.length; concept++) {
    const offset = concept * rows
    const { worth } = concepts[concept]!
    const own = Math.min(worth, byConcept[offset + row]!)
    let most = own
    for (let lender = from; lender <= to; lender++) {
      const score = byConcept[offset + lender]!
      if (score > most) most = Math.max(most, Math.min(worth, score) * lending(lender, row))
    }
    sum += most - own
  }
  return sum
}

/** Only rows that were looked at closely have a similarity to lend. */
function lentSimilarity(
  rows: Uint32Array,
  similarities: Float32Array,
  index: number,
  from: number,
  to: number,
): number {
  const row = rows[index]!
  const own = similarities[index]!
  let most = own
  for (let i = index - 1; i >= 0 && rows[i]! >= from; i--) {
    most = Math.max(most, similarities[i]! * lending(rows[i]!, row))
  }
  for (let i = index + 1; i < rows.length && rows[i]! <= to; i++) {
    most = Math.max(most, similarities[i]! * lending(rows[i]!, row))
  }
  return most - own
}
