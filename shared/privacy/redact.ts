import { detectors, type Detector, type RedactionKind } from '#shared/privacy/detectors.ts'
import { findPrivateKeys } from '#shared/privacy/private-keys.ts'

/** A range of a text, in UTF-16 units. */
export type Finding = { kind: RedactionKind; start: number; end: number }

/**
 * Private data of these kinds in a text, in order and without overlaps: of two that overlap, the
 * one that begins first is kept; of two that begin together, the longer one.
 */
export function findPrivateData(text: string, wanted: ReadonlySet<RedactionKind>): Finding[] {
  const findings: Finding[] = []
  if (wanted.has('secret')) {
    for (const [start, end] of findPrivateKeys(text)) findings.push({ kind: 'secret', start, end })
  }
  for (const detector of detectors) {
    if (!wanted.has(detector.kind)) continue
    for (const finding of findMatches(text, detector)) findings.push(finding)
  }
  findings.sort((one, other) => one.start - other.start || other.end - one.end)
  let reached = 0
  return findings.filter(({ start, end }) => {
    if (start < reached) return false
    reached = end
    return true
  })
}

function* findMatches(text: string, { kind, pattern, isValid }: Detector): Generator<Finding> {
  let reached = 0
  for (const { indices } of text.matchAll(pattern)) {
    const { it, head } = indices!.groups ?? {}
    const [matchStart, matchEnd] = indices![0]!
    const start = (it ?? head)?.[0] ?? matchStart
    const end = it?.[1] ?? matchEnd
    if (start < reached) continue
    reached = matchEnd
    if (!isValid || isValid(text.slice(start, end))) yield { kind, start, end }
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
