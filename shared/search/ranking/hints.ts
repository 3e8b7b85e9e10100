import type { Concepts } from '#shared/search/query/concepts.ts'
import type { SearchRange } from '#shared/search/ranking/search-range.ts'
import type { ParsedQuery } from '#shared/search/query/parse-query.ts'
import { foldText } from '#shared/search/words/writing-systems.ts'
import { numberMarker, timeMarker } from '#shared/search/words/index-terms.ts'

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
