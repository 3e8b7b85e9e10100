import { detectors, type Detector, type RedactionKind } from '#shared/privacy/detectors.ts'
import { lowerBound } from '#shared/search/columns/column.ts'
import { findPrivateKeys } from '#shared/privacy/private-keys.ts'

/** A range of a text, in UTF-16 units. */
export type Finding = { kind: RedactionKind; start: number; end: number }

/**
 * Private data of these kinds in a text, in order and without overlaps: of two that overlap, the
 * one that begins first is kept; of two that begin together, the longer one. What characters that are not shown
 * divide is found as well.
 */
export function findPrivateData(text: string, wanted: ReadonlySet<RedactionKind>): Finding[] {
  const findings = [...findAll(text, wanted), ...findDivided(text, wanted)]
  findings.sort((one, other) => one.start - other.start || other.end - one.end)
  let reached = 0
  return findings.filter(({ start, end }) => {
    if (start < reached) return false
    reached = end
    return true
  })
}

function* findAll(text: string, wanted: ReadonlySet<RedactionKind>): Generator<Finding> {
  if (wanted.has('secret')) {
    for (const [start, end] of findPrivateKeys(text)) yield { kind: 'secret', start, end }
  }
  for (const detector of detectors)
    if (wanted.has(detector.kind)) yield* findMatches(text, detector)
}

/** Between characters of private data, which are of ASCII or digits: those behind an emoji divide nothing. */
const dividers = /(?<=[\x20-~\p{Nd}])\p{DI}+(?=[\x20-~\p{Nd}])/gu

/** What is found in a text without its dividers, at its places in the text. */
function* findDivided(text: string, wanted: ReadonlySet<RedactionKind>): Generator<Finding> {
  // Of each divider: where it stood in the joined text, and the characters removed up to it.
  const cuts: { at: number; removed: number }[] = []
  let [joined, from, removed] = ['', 0, 0]
  for (const { index, 0: divider } of text.matchAll(dividers)) {
    joined += text.slice(from, index)
    from = index + divider.length
    removed += divider.length
    cuts.push({ at: joined.length, removed })
  }
  if (cuts.length === 0) return
  joined += text.slice(from)
  const toPlace = (offset: number): number => {
    const passed = lowerBound(cuts.length, position => cuts[position]!.at <= offset)
    return offset + (passed === 0 ? 0 : cuts[passed - 1]!.removed)
  }
  for (const { kind, start, end } of findAll(joined, wanted))
    yield { kind, start: toPlace(start), end: toPlace(end - 1) + 1 }
}

function* findMatches(text: string, detector: Detector): Generator<Finding> {
  const { kind, pattern } = detector
  let reached = 0
  pattern.lastIndex = 0
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
    const { it, head } = match.indices!.groups ?? {}
    const [matchStart, matchEnd] = match.indices![0]!
    const start = (it ?? head)?.[0] ?? matchStart
    const end = it?.[1] ?? matchEnd
    // A match of no length stands before what it finds.
    const isAhead = matchEnd === matchStart
    if (isAhead) pattern.lastIndex++
    if (start < reached) continue
    reached = matchEnd
    const length = validLength(text.slice(start, end), detector)
    if (length === 0) continue
    yield { kind, start, end: start + length }
    if (isAhead || start + length < end) reached = pattern.lastIndex = start + length
  }
}

/** How much of a match is what is looked for: 0 when nothing is. */
function validLength(match: string, { isValid, isGrouped }: Detector): number {
  if (!isValid) return match.length
  let { length } = match
  while (length > 0 && !isValid(match.slice(0, length))) {
    length = isGrouped ? Math.max(match.lastIndexOf(' ', length - 1), 0) : 0
  }
  return length
}

/** Replaces every finding by `[redacted:kind]`; the same text when there is none. */
export function redactText(text: string, wanted: ReadonlySet<RedactionKind>): string {
  let redacted = ''
  let from = 0
  for (const { kind, start, end } of findPrivateData(text, wanted)) {
    redacted += `${text.slice(from, start)}[redacted:${kind}]`
    from = end
  }
  return from === 0 ? text : redacted + text.slice(from)
}
