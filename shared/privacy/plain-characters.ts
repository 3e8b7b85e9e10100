import { lowerBound } from '#shared/search/columns/column.ts'

/** A text in the characters that patterns are written in, and where each of them stood. */
export type PlainText = {
  text: string
  /** The range of the original text, in UTF-16 units, that a range of the plain one came from. */
  toRange: (start: number, end: number) => [start: number, end: number]
}

/**
 * What is replaced: default-ignorable characters between those of private data (behind an emoji they divide
 * nothing), digits of other scripts, dashes, spaces, and full-width forms of ASCII.
 */
const foreign =
  /(?<=[\x20-~\p{Nd}\p{Zs}])\p{DI}+(?=[\x20-~\p{Nd}\p{Zs}])|(?![0-9])\p{Nd}|(?!-)[\p{Pd}\u2212]|(?! )\p{Zs}|[\uff01-\uff5e]/gu

/** Digits of each numbering system of CLDR that has ten, by character. */
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

/** The text in plain characters; undefined when it has no others. */
export function toPlainText(original: string): PlainText | undefined {
  // Of each replacement that is shorter: where it ends in the plain text, and the units lost up to it.
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
