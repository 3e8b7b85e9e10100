import { detectors, type Detector, type RedactionKind } from '#shared/privacy/detectors.ts'
import { lowerBound } from '#shared/search/columns/column.ts'

/** A range of a text, in UTF-16 units. */
export type Finding = { kind: RedactionKind; start: number; end: number }

/**
 * Finds private data of these kinds in a text, in order: of two that overlap the first, of two that begin together the
 * longer one. Invisible characters in between, and digits, dashes or spaces of other scripts, hide nothing.
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

/** Finds private data in the plain form of a text. */
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
    // The match of a lookahead has no length.
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

/** Replaces every finding by `[redacted:kind]`. */
export function redactText(text: string, wanted: ReadonlySet<RedactionKind>): string {
  let redacted = ''
  let from = 0
  for (const { kind, start, end } of findPrivateData(text, wanted)) {
    redacted += `${text.slice(from, start)}[redacted:${kind}]`
    from = end
  }
  return from === 0 ? text : redacted + text.slice(from)
}

const keyLengthMax = 8_000

/** The dashes at the end of one line may begin the next, so they are not consumed. */
const firstLine = /-----BEGIN (?=([A-Z ]{0,30}PRIVATE KEY-----))/g
const lastLine = /-----END (?=([A-Z ]{0,30}PRIVATE KEY-----))/g

/**
 * Private keys in PEM, as start and end in UTF-16 units. First and last lines have patterns of their own: one for both
 * would read 8,000 characters again for every first line.
 */
function* findPrivateKeys(text: string): Generator<[start: number, end: number]> {
  const lastLines = text.matchAll(lastLine)
  let last = lastLines.next().value
  let reached = 0
  for (const first of text.matchAll(firstLine)) {
    if (first.index < reached) continue
    const contentStart = lineEnd(first)
    while (last && last.index < contentStart) last = lastLines.next().value
    if (!last) return
    if (last.index - contentStart > keyLengthMax) continue
    reached = lineEnd(last)
    yield [first.index, reached]
  }
}

const lineEnd = (match: RegExpExecArray): number => match.index + match[0].length + match[1]!.length

/**
 * Characters to replace: default-ignorable ones between those of private data, digits of other scripts, dashes, spaces,
 * and full-width forms of ASCII.
 */
const foreign =
  /(?<=[\x20-~\p{Nd}\p{Zs}])\p{DI}+(?=[\x20-~\p{Nd}\p{Zs}])|(?![0-9])\p{Nd}|(?!-)[\p{Pd}\u2212]|(?! )\p{Zs}|[\uff01-\uff5e]/gu

/** Values of the digits of CLDR's numbering systems, by character. */
const digitValues = new Map(
  Intl.supportedValuesOf('numberingSystem').flatMap(numberingSystem => {
    const { format } = new Intl.NumberFormat('en', { numberingSystem })
    return Array.from({ length: 10 }, (_, digit) => [format(digit), String(digit)] as const)
  }),
)

function toPlain(character: string): string {
  const digit = digitValues.get(character)
  if (digit !== undefined) return digit
  if (/^[\uff01-\uff5e]$/.test(character))
    return String.fromCharCode(character.charCodeAt(0) - 0xfee0)
  if (/^[\p{Pd}\u2212]$/u.test(character)) return '-'
  if (/^\p{Zs}$/u.test(character)) return ' '
  return /^\p{Nd}$/u.test(character) ? character : ''
}

/** Writes a text in plain characters; undefined when it has no others. */
function toPlainText(original: string):
  | {
      text: string
      /** The range of the original text for a range of the plain one, in UTF-16 units. */
      toRange: (start: number, end: number) => [start: number, end: number]
    }
  | undefined {
  // The ends of shorter replacements in the plain text, with the units lost up to there.
  const cuts: { at: number; lost: number }[] = []
  let [text, from, lost] = ['', 0, 0]
  for (const { index, 0: found } of original.matchAll(foreign)) {
    const plain = toPlain(found)
    text += original.slice(from, index) + plain
    from = index + found.length
    if (plain.length === found.length) continue
    lost += found.length - plain.length
    cuts.push({ at: text.length, lost })
  }
  if (from === 0) return undefined
  text += original.slice(from)
  const toPlace = (offset: number): number => {
    const passed = lowerBound(cuts.length, position => cuts[position]!.at <= offset)
    return offset + (passed === 0 ? 0 : cuts[passed - 1]!.lost)
  }
  const toEnd = (end: number): number => {
    const last = toPlace(end - 1)
    return last + String.fromCodePoint(original.codePointAt(last)!).length
  }
  return { text, toRange: (start, end) => [toPlace(start), toEnd(end)] }
}
