import { detectors, type Detector, type RedactionKind } from '#shared/privacy/detectors.ts'
import { toPlainText } from '#shared/privacy/plain-characters.ts'
import { findPrivateKeys } from '#shared/privacy/private-keys.ts'

/** A range of a text, in UTF-16 units. */
export type Finding = { kind: RedactionKind; start: number; end: number }

/**
 * Private data of these kinds in a text, in order and without overlaps: of two that overlap, the
 * one that begins first is kept; of two that begin together, the longer one. What characters that are not shown
 * divide, and what has digits, dashes or spaces of another script, is found as well.
 */
export function findPrivateData(text: string, wanted: ReadonlySet<RedactionKind>): Finding[] {
  const findings = [...findAll(text, wanted), ...findInPlainText(text, wanted)]
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

/** What is found in a text of plain characters, at its places in the text. */
function* findInPlainText(text: string, wanted: ReadonlySet<RedactionKind>): Generator<Finding> {
  const plain = toPlainText(text)
  if (!plain) return
  for (const { kind, start, end } of findAll(plain.text, wanted)) {
    const [from, to] = plain.toRange(start, end)
    yield { kind, start: from, end: to }
  }
}

function* findMatches(text: string, detector: Detector): Generator<Finding> {
  const { kind, pattern, validLength } = detector
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
    const length = validLength ? validLength(text.slice(start, end)) : end - start
    if (length === 0) continue
    yield { kind, start, end: start + length }
    if (isAhead || start + length < end) reached = pattern.lastIndex = start + length
  }
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
