import type { Concepts } from '#shared/search/query/concepts.ts'
import type { Place } from '#shared/search/ranking/source-position.ts'
import type { Reading } from '#shared/search/query/question.ts'
import { foldText } from '#shared/search/words/scripts.ts'
import { counts, dates } from '#shared/search/words/words.ts'

/** A side of the conversation is a weaker hint than a name. */
const roleHint = 0.8

/** For each row: 1 when who said it is named in the question, less when the side asked for did. */
export function nameHints(
  place: Place,
  rows: Uint32Array,
  asked: { text: string; reading: Reading; concepts: Concepts },
): Float32Array {
  const { block } = place
  const hints = new Float32Array(rows.length)
  const { role } = asked.reading
  if (role) {
    for (let i = 0; i < rows.length; i++) if (block.role(rows[i]!) === role) hints[i] = roleHint
  }
  const isNamed = namedIn(asked.text)
  for (let i = 0; i < rows.length; i++) {
    const speaker = block.speakerOf(rows[i]!)
    if (speaker !== undefined && isNamed(speaker)) hints[i] = 1
  }
  markRows(place, rows, asked.concepts.speakers, hints)
  return hints
}

/** For each row: 1 when it holds a number where one is asked for, a time where one is. */
export function kindHints(place: Place, rows: Uint32Array, reading: Reading): Float32Array {
  const hints = new Float32Array(rows.length)
  const marks = [...(reading.wantsNumber ? [counts] : []), ...(reading.wantsTime ? [dates] : [])]
  markRows(place, rows, marks, hints)
  return hints
}

/** Asks once for each speaker: a conversation has few. */
function namedIn(text: string): (speaker: string) => boolean {
  const known = new Map<string, boolean>()
  let words: Set<string> | undefined
  return speaker => {
    const hit = known.get(speaker)
    if (hit !== undefined) return hit
    words ??= new Set(foldText(text).match(/[\p{L}\p{N}]+/gu))
    const answer = foldText(speaker)
      .split(/\s+/)
      .some(part => words!.has(part))
    known.set(speaker, answer)
    return answer
  }
}

let sums = new Float32Array(0)

function markRows(
  { block, first, end }: Place,
  rows: Uint32Array,
  marks: readonly string[],
  hints: Float32Array,
) {
  if (marks.length === 0) return
  const terms = marks.map(term => ({ term, weight: 1 }))
  if (sums.length < end - first) sums = new Float32Array(end - first)
  sums.fill(0, 0, end - first)
  block.words.scores(terms, first, end, sums)
  for (let i = 0; i < rows.length; i++) if (sums[rows[i]! - first]! > 0) hints[i] = 1
}
