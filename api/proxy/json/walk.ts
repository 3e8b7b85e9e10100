import { skipWhitespace } from '#api/proxy/json/validate.ts'

/**
 * Iteration over bytes that `validateJson` has accepted. A visitor returns the end of the value it was
 * given: from `valueEnd`, or by iterating over that value.
 */

const quote = 0x22
const backslash = 0x5c

/** Called with the offsets of a member's name, of the end of that name, and of its value. */
export type VisitMember = (name: number, nameEnd: number, value: number) => number

/** Visits the members of the object that begins at `at`, duplicates included. @returns its end. */
export function forEachMember(bytes: Buffer, at: number, visit: VisitMember): number {
  at = skipWhitespace(bytes, at + 1)
  while (bytes[at] === quote) {
    const nameEnd = stringEnd(bytes, at)
    const value = skipWhitespace(bytes, skipWhitespace(bytes, nameEnd) + 1)
    at = skipComma(bytes, visit(at, nameEnd, value))
  }
  return at + 1
}

/** Visits the elements of the array that begins at `at`. @returns its end. */
export function forEachElement(
  bytes: Buffer,
  at: number,
  visit: (element: number) => number,
): number {
  at = skipWhitespace(bytes, at + 1)
  while (bytes[at] !== 0x5d) at = skipComma(bytes, visit(at))
  return at + 1
}

/** @returns the first element of the array, or the first name of the object, that begins at `at`, or its closing bracket. */
export const firstElement = (bytes: Buffer, at: number): number => skipWhitespace(bytes, at + 1)

/** @returns the element or name after what ends at `end`, or the closing bracket. */
export const nextElement = (bytes: Buffer, end: number): number => skipComma(bytes, end)

export const isArrayEnd = (bytes: Buffer, at: number): boolean => bytes[at] === 0x5d

export const isObjectEnd = (bytes: Buffer, at: number): boolean => bytes[at] === 0x7d

/** Where the name that begins at `at` ends, and where the value of that member begins. */
export function memberAt(bytes: Buffer, at: number): { nameEnd: number; valueAt: number } {
  const nameEnd = stringEnd(bytes, at)
  return { nameEnd, valueAt: skipWhitespace(bytes, skipWhitespace(bytes, nameEnd) + 1) }
}

function skipComma(bytes: Buffer, end: number): number {
  const at = skipWhitespace(bytes, end)
  return bytes[at] === 0x2c ? skipWhitespace(bytes, at + 1) : at
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
  if (kind === 'string') return stringEnd(bytes, at)
  if (kind === 'other') return scalarEnd(bytes, at)
  return nearContainerEnd(bytes, at, Infinity)!
}

/** @returns the end of the object or array that begins at `at`; undefined when it is not before `limit`. */
export function nearContainerEnd(bytes: Buffer, at: number, limit: number): number | undefined {
  for (let depth = 0; at < limit;) {
    const byte = bytes[at]
    if (byte === quote) {
      at = stringEnd(bytes, at)
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

/** For shorter strings this loop is faster than `Buffer.indexOf`. */
const scanBytesMax = 32

function stringEnd(bytes: Buffer, start: number): number {
  let at = start + 1
  for (const near = Math.min(at + scanBytesMax, bytes.length); at < near; at++) {
    const byte = bytes[at]
    if (byte === quote) return at + 1
    if (byte === backslash) at++
  }
  for (;;) {
    const end = bytes.indexOf(quote, at)
    let before = end
    while (before > at && bytes[before - 1] === backslash) before--
    if ((end - before) % 2 === 0) return end + 1
    at = end + 1
  }
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
    if (length > 2 && isEscaped(bytes, start, end)) {
      return known.get(parseValue(bytes, start, end) as string)
    }
    return byLength[length]?.find(name => matchesAt(bytes, start + 1, name))
  }
}

function isEscaped(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (bytes[at] === backslash) return true
  return false
}

function matchesAt(bytes: Buffer, at: number, name: string): boolean {
  for (let index = 0; index < name.length; index++) {
    if (bytes[at + index] !== name.charCodeAt(index)) return false
  }
  return true
}
