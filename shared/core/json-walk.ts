/**
 * The walker over the bytes of JSON: where texts and values end, and which members and elements there are. The grammar
 * was checked before (`validateJson`). In other bytes, and in JSON that breaks off, it finds what it can, in linear
 * time; offsets beyond the last byte mean that a value breaks off.
 */

const quote = 0x22
const backslash = 0x5c

/** Up to here a loop is faster than `indexOf`. */
const scanBytesMax = 32

/**
 * Finds the quote that ends a text; the bytes may be one chunk of many.
 *
 * @param start in the text, not behind the backslash of an escape
 * @returns the offset of the quote. Without one the number of bytes, or one more where their last byte begins an
 *   escape: the next chunk is to be read from as many bytes on.
 */
export function endingQuote(bytes: Uint8Array, start: number): number {
  let at = start
  for (const near = Math.min(at + scanBytesMax, bytes.length); at < near; at++) {
    const byte = bytes[at]
    if (byte === quote) return at
    if (byte === backslash) at++
  }
  for (;;) {
    const found = bytes.indexOf(quote, at)
    const end = found < 0 ? bytes.length : found
    let before = end
    while (before > at && bytes[before - 1] === backslash) before--
    const escaped = (end - before) % 2
    if (found < 0) return Math.max(at, end + escaped)
    if (escaped === 0) return end
    at = end + 1
  }
}

/** @returns the end of the text whose first quote is at `at`. */
const textEnd = (bytes: Buffer, at: number): number => endingQuote(bytes, at + 1) + 1

/** @returns the offset of the next byte that is no white space. */
export function skipWhitespace(bytes: Uint8Array, at: number): number {
  for (; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) break
  }
  return at
}

/** @returns where the value begins, after white space and a byte order mark. */
export const skipByteOrderMark = (bytes: Uint8Array): number =>
  skipWhitespace(bytes, bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0)

/** @returns where the first element, or the first name, is of the array or object that begins at `at`, or its closing bracket. */
export const firstElement = (bytes: Buffer, at: number): number => skipWhitespace(bytes, at + 1)

/** @returns where the element or name after what ends at `end` is, or the closing bracket. */
export function nextElement(bytes: Buffer, end: number): number {
  const at = skipWhitespace(bytes, end)
  return bytes[at] === 0x2c ? skipWhitespace(bytes, at + 1) : at
}

export const isArrayEnd = (bytes: Buffer, at: number): boolean => bytes[at] === 0x5d

/** Where the name that begins at `at` ends, and where the value of that member begins; undefined where no name is. */
export function memberAt(
  bytes: Buffer,
  at: number,
): { nameEnd: number; valueAt: number } | undefined {
  if (bytes[at] !== quote) return undefined
  const nameEnd = textEnd(bytes, at)
  return { nameEnd, valueAt: skipWhitespace(bytes, skipWhitespace(bytes, nameEnd) + 1) }
}

/**
 * Visits the members of the object that begins at `at`, duplicates included.
 *
 * @param visit gets the offsets of name, end of name and value, and returns the end of the value where it knows it
 * @returns its end.
 */
export function forEachMember(
  bytes: Buffer,
  at: number,
  visit: (name: number, nameEnd: number, value: number) => number | undefined,
): number {
  let name = firstElement(bytes, at)
  for (let member = memberAt(bytes, name); member; member = memberAt(bytes, name)) {
    const { nameEnd, valueAt } = member
    name = nextElement(bytes, visit(name, nameEnd, valueAt) ?? valueEnd(bytes, valueAt))
  }
  return name + 1
}

/** Visits the elements of the array that begins at `at`, which return their end where they know it. @returns its end. */
export function forEachElement(
  bytes: Buffer,
  at: number,
  visit: (element: number) => number | undefined,
): number {
  let element = firstElement(bytes, at)
  while (element < bytes.length && !isArrayEnd(bytes, element))
    element = nextElement(bytes, visit(element) ?? valueEnd(bytes, element))
  return element + 1
}

/** The kind of the value that begins at `at`; `other` is a number or a literal. */
export function kindAt(bytes: Buffer, at: number): 'object' | 'array' | 'string' | 'other' {
  const first = bytes[at]
  if (first === 0x7b) return 'object'
  if (first === 0x5b) return 'array'
  return first === quote ? 'string' : 'other'
}

/** @returns the end of the value that begins at `at`. */
export function valueEnd(bytes: Buffer, at: number): number {
  const kind = kindAt(bytes, at)
  if (kind === 'string') return textEnd(bytes, at)
  if (kind === 'other') return scalarEnd(bytes, at)
  return nearContainerEnd(bytes, at, bytes.length) ?? bytes.length
}

/** @returns the end of the object or array that begins at `at`; undefined when it is not before `limit`. */
export function nearContainerEnd(bytes: Buffer, at: number, limit: number): number | undefined {
  for (let depth = 0; at < limit;) {
    const byte = bytes[at]
    if (byte === quote) {
      at = textEnd(bytes, at)
      continue
    }
    at++
    if (byte === 0x7b || byte === 0x5b) depth++
    else if ((byte === 0x7d || byte === 0x5d) && --depth === 0) return at
  }
  return undefined
}

/** Numbers and literals end before white space, a comma, a closing bracket or the end of input. */
function scalarEnd(bytes: Buffer, at: number): number {
  for (; at < bytes.length; at++) {
    const byte = bytes[at]!
    if (byte <= 0x20 || byte === 0x2c || byte === 0x5d || byte === 0x7d) break
  }
  return at
}

/** The decoded value between two offsets. */
export const parseValue = (bytes: Buffer, start: number, end: number): unknown =>
  JSON.parse(bytes.toString('utf8', start, end)) as unknown

/** @returns which of a few names stands between two offsets, escaped or not, without decoding others. */
export type NameMatcher<Name extends string> = (
  bytes: Buffer,
  start: number,
  end: number,
) => Name | undefined

/** @param names in ASCII, without characters that JSON escapes */
export function createNameMatcher<const Name extends string>(
  names: readonly Name[],
): NameMatcher<Name> {
  const byLength: Name[][] = []
  for (const name of names) (byLength[name.length] ??= []).push(name)
  const known = new Map<string, Name>(names.map(name => [name, name]))
  const longest = byLength.length - 1

  return (bytes, start, end) => {
    const length = end - start - 2
    // An escape spells one character with up to six bytes.
    if (length > longest * 6) return undefined
    let isEscaped = false
    for (let at = start; at < end; at++) isEscaped ||= bytes[at] === backslash
    if (isEscaped) return known.get(parseValue(bytes, start, end) as string)
    return byLength[length]?.find(name => matchesAt(bytes, start + 1, name))
  }
}

function matchesAt(bytes: Buffer, at: number, name: string): boolean {
  for (let index = 0; index < name.length; index++) {
    if (bytes[at + index] !== name.charCodeAt(index)) return false
  }
  return true
}
