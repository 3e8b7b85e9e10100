import { detectors, type RedactionKind } from '#shared/privacy/detectors.ts'

/** A place in a text, in UTF-16 units. */
export type Finding = { kind: RedactionKind; start: number; end: number }

/**
 * What of these kinds a text holds, in order and without overlaps: where two meet, the one that begins
 * first stands, the longer of two that begin together.
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

/** The text with `[redacted:kind]` in the place of every finding; the same text when there is none. */
export function redactText(text: string, wanted: ReadonlySet<RedactionKind>): string {
  let kept = ''
  let from = 0
  for (const { kind, start, end } of findPrivateData(text, wanted)) {
    kept += `${text.slice(from, start)}[redacted:${kind}]`
    from = end
  }
  return from === 0 ? text : kept + text.slice(from)
}
