import { detectors, type RedactionKind } from '#shared/privacy/detectors.ts'

/** A range of a text, in UTF-16 units. */
export type Finding = { kind: RedactionKind; start: number; end: number }

/**
 * Private data of these kinds in a text, in order and without overlaps: of two that overlap, the
 * one that begins first is kept; of two that begin together, the longer one.
 */
export function findPrivateData(text: string, wanted: ReadonlySet<RedactionKind>): Finding[] {
  const found: Finding[] = []
  for (const { kind, pattern, isValid } of detectors) {
    if (!wanted.has(kind)) continue
    for (const match of text.matchAll(pattern)) {
      const [start, end] = match.indices!.groups?.it ?? match.indices![0]!
      if (!isValid || isValid(text.slice(start, end))) found.push({ kind, start, end })
    }
  }
  found.sort((one, other) => one.start - other.start || other.end - one.end)
  let reached = 0
  return found.filter(({ start, end }) => {
    if (start < reached) return false
    reached = end
    return true
  })
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
