import type { Calibration } from '#shared/domain/embedder.ts'
import type { Span } from '#shared/search/query/calendar.ts'
import { candidatesIn } from '#shared/search/ranking/candidates.ts'
import type { Concepts } from '#shared/search/query/concepts.ts'
import { relevanceOf, type Signals, type Weights } from '#shared/search/ranking/fuse.ts'
import { kindHints, nameHints } from '#shared/search/ranking/hints.ts'
import { lentTo } from '#shared/search/ranking/context-boost.ts'
import { neighboursIn, type Neighbours } from '#shared/search/ranking/adjacent-turns.ts'
import type { Place } from '#shared/search/ranking/source-position.ts'
import type { Reading } from '#shared/search/query/question.ts'
import { scoreOf } from '#shared/search/ranking/score.ts'
import { wordTableOf } from '#shared/search/ranking/word-table.ts'

/** A row that may be an answer, and what speaks for it. */
export type Judged = {
  place: Place
  row: number
  at: number
  signals: Signals
  relevance: number
}

export type Inquiry = {
  text: string
  vector: Float32Array | null
  now: number
  calibration: Calibration
  reading: Reading
  concepts: Concepts
  weights: Weights
}

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** A text of so many tokens can tell about two thirds of what a text can tell at all. */
const substantialTokens = 14

/** Judges the best rows of a place; `complete` when there is no other row it could have judged. */
export function judge(
  place: Place,
  inquiry: Inquiry,
  reach: number,
): { judged: Judged[]; complete: boolean } {
  const { reading, concepts, vector, calibration, weights, now } = inquiry
  const { block, first } = place
  const { times } = reading
  const table = wordTableOf(place, concepts.found)
  const near = neighboursIn(place)
  const { rows, cosines, complete } = candidatesIn(place, near, { vector, table, times, reach })
  const similarities = vector ? cosines.map(cosine => scoreOf(cosine, calibration)) : cosines
  const lent = lentTo(place, near, table, rows, similarities)
  const names = nameHints(place, rows, inquiry)
  const kinds = kindHints(place, rows, reading)
  const share = (worth: number) => (concepts.whole > 0 ? Math.min(1, worth / concepts.whole) : 0)

  const judged: Judged[] = []
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i]!
    const at = block.at(row)
    const signals: Signals = {
      similarity: similarities[i]!,
      words: share(table.sums[row - first]!),
      neighbours:
        weights.lentWords * share(lent.words[i]!) + weights.lentSimilarity * lent.similarity[i]!,
      time: isWithin(at, times) ? 1 : 0,
      name: names[i]!,
      kind: kinds[i]!,
      recency: freshness(now - at),
      substance: 1 - Math.exp(-block.tokens(row) / substantialTokens),
    }
    judged.push({ place, row, at, signals, relevance: relevanceOf(signals, weights) })
  }
  keepBehindLenders(judged, near, weights)
  return { judged, complete }
}

/** Less than this of its own, and a row is there for what was said around it. */
const ownLittle = 0.1

/** What a row borrowed may bring it up to whoever lent it, never past. Rows ascend. */
function keepBehindLenders(judged: readonly Judged[], near: Neighbours, weights: Weights) {
  const ownOf = ({ signals }: Judged) => signals.similarity + weights.words * signals.words
  for (const [i, borrower] of judged.entries()) {
    const own = ownOf(borrower)
    if (own >= ownLittle || borrower.signals.neighbours <= 0) continue
    const from = near.firstLender(borrower.row)
    const to = near.lastLender(borrower.row)
    let most = 0
    const meet = (other: Judged) => {
      if (ownOf(other) > own) most = Math.max(most, other.relevance)
    }
    for (let j = i - 1; j >= 0 && judged[j]!.row >= from; j--) meet(judged[j]!)
    for (let j = i + 1; j < judged.length && judged[j]!.row <= to; j++) meet(judged[j]!)
    if (most > 0) borrower.relevance = Math.min(borrower.relevance, most * behind)
  }
}

/** Just behind: of two equals the newer would come first. */
const behind = 0.999

function isWithin(at: number, times: readonly Span[]): boolean {
  for (const { from, to } of times) if (at >= from && at < to) return true
  return false
}

/** Only decides between near equals: an old memory that fits better wins at any age. */
function freshness(ageMs: number): number {
  if (ageMs < 4 * HOUR_MS) return 1
  if (ageMs < 3 * DAY_MS) return 0.6
  return 0.3 * Math.exp(-ageMs / (60 * DAY_MS))
}
