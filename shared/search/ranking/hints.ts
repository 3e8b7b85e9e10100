import type { Concepts } from '#shared/search/query/concepts.ts'
import type { SearchRange } from '#shared/search/ranking/search-range.ts'
import type { ParsedQuery } from '#shared/search/query/parse-query.ts'
import { isFollowedByTurn } from '#shared/search/ranking/adjacent-turns.ts'
import { splitSentences } from '#shared/search/query/split-sentences.ts'
import { foldText } from '#shared/search/words/writing-systems.ts'
import { numberMarker, questionMarker, timeMarker } from '#shared/search/words/index-terms.ts'

/** Matching the role is a weaker hint than matching the name. */
const roleHintStrength = 0.8

/** For each row: 1 when the query names its speaker, less when only its role is asked for. */
export function speakerHints(
  range: SearchRange,
  rows: Uint32Array,
  query: { text: string; parsedQuery: ParsedQuery; concepts: Concepts },
): Float32Array {
  const { tierIndex } = range
  const hints = new Float32Array(rows.length)
  const { role } = query.parsedQuery
  if (role) {
    for (let i = 0; i < rows.length; i++)
      if (tierIndex.role(rows[i]!) === role) hints[i] = roleHintStrength
  }
  const isNamed = createSpeakerMatcher(query.text)
  for (let i = 0; i < rows.length; i++) {
    const speaker = tierIndex.speaker(rows[i]!)
    if (speaker !== undefined && isNamed(speaker)) hints[i] = 1
  }
  applyMarkerHints(range, rows, query.concepts.speakerMarkers, hints)
  return hints
}

/** For each row: 1 when it contains a number or a time and the query asks for one. */
export function answerTypeHints(
  range: SearchRange,
  rows: Uint32Array,
  parsedQuery: ParsedQuery,
): Float32Array {
  const hints = new Float32Array(rows.length)
  const markers = [
    ...(parsedQuery.wantsNumber ? [numberMarker] : []),
    ...(parsedQuery.wantsTime ? [timeMarker] : []),
  ]
  applyMarkerHints(range, rows, markers, hints)
  return hints
}

/** Longer turns that end with a question mark also tell something. In tokens. */
const questionTokensMax = 28

/** People's questions to each other are part of what happened. */
const isAnsweredByPerson = ({ tierIndex, end }: SearchRange, row: number): boolean =>
  row + 1 < end && isFollowedByTurn(tierIndex, row) && tierIndex.role(row + 1) === 'user'

/** One question about the past: requests to do something ("Can you plan a trip?") tell of plans. */
const onlyAsks = (text: string): boolean =>
  splitSentences(text).length === 1 &&
  !/^(?:can|could|would|will|should|how (?:do|can|should))\b/i.test(text)

/** For each row: 1 for a short turn of the user that is one question. */
export function questionHints(range: SearchRange, rows: Uint32Array): Float32Array {
  const { tierIndex } = range
  const hints = new Float32Array(rows.length)
  applyMarkerHints(range, rows, [questionMarker], hints)
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i]!
    if (hints[i] === 0) continue
    const isShort = tierIndex.role(row) === 'user' && tierIndex.tokens(row) <= questionTokensMax
    const isQuestion =
      isShort && !isAnsweredByPerson(range, row) && onlyAsks(tierIndex.memory(row).text)
    if (!isQuestion) hints[i] = 0
  }
  return hints
}

/** Whether the text names a speaker; cached, as a conversation has few speakers. */
function createSpeakerMatcher(text: string): (speaker: string) => boolean {
  const known = new Map<string, boolean>()
  let words: Set<string> | undefined
  return speaker => {
    const hit = known.get(speaker)
    if (hit !== undefined) return hit
    words ??= new Set(foldText(text).match(/[\p{L}\p{N}]+/gu))
    const isNamed = foldText(speaker)
      .split(/\s+/)
      .some(part => words!.has(part))
    known.set(speaker, isNamed)
    return isNamed
  }
}

let scratchSums = new Float32Array(0)

function applyMarkerHints(
  { tierIndex, first, end }: SearchRange,
  rows: Uint32Array,
  markers: readonly string[],
  hints: Float32Array,
) {
  if (markers.length === 0) return
  const terms = markers.map(term => ({ term, weight: 1 }))
  if (scratchSums.length < end - first) scratchSums = new Float32Array(end - first)
  scratchSums.fill(0, 0, end - first)
  tierIndex.wordIndex.scoreRows(terms, first, end, scratchSums)
  for (let i = 0; i < rows.length; i++) if (scratchSums[rows[i]! - first]! > 0) hints[i] = 1
}
