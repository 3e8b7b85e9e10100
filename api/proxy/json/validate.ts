import { Refusal } from '#shared/core/errors.ts'

/** As deep as every other body of this service may nest (shared/core/sanitize-text.ts). */
const depthMax = 64

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const colon = 0x3a

/** The bytes of a string that stand for themselves: no quote, no backslash, no control character. */
const unescapedByte = new Uint8Array(256).fill(1, 0x20)
unescapedByte[quote] = 0
unescapedByte[backslash] = 0

const digit = new Uint8Array(256).fill(1, 0x30, 0x3a)
const escapes = new Uint8Array(256)
for (const byte of Buffer.from('"\\/bfnrt')) escapes[byte] = 1
const hex = new Uint8Array(256)
for (const byte of Buffer.from('0123456789abcdefABCDEF')) hex[byte] = 1

/**
 * Holds bytes against the grammar of JSON, in one pass and without reading any value. It accepts what
 * `JSON.parse` accepts of the same bytes as UTF-8, a byte order mark before them included.
 *
 * @returns where the value begins.
 * @throws Refusal `invalid` for anything else, and for more than 64 levels.
 */
export function validateJson(bytes: Uint8Array): number {
  const start = skipWhitespace(bytes, skipByteOrderMark(bytes))
  /** For every open level, how it closes. */
  const closings = new Uint8Array(depthMax + 1)
  let depth = 0
  let at = start
  for (;;) {
    const first = bytes[at]
    const closing = first === 0x7b ? 0x7d : first === 0x5b ? 0x5d : 0
    if (closing === 0) at = scalarEnd(bytes, at)
    else {
      if (++depth > depthMax) {
        throw new Refusal('invalid', `The body nests deeper than ${depthMax} levels`)
      }
      closings[depth] = closing
      at = skipWhitespace(bytes, at + 1)
      if (bytes[at] !== closing) {
        if (closing === 0x7d) at = skipMemberName(bytes, at)
        continue
      }
    }
    // A value is over, or a level that has none; levels end until a comma promises one more.
    for (;;) {
      if (depth === 0) return assertEndOfInput(bytes, at, start)
      at = skipWhitespace(bytes, at)
      if (bytes[at] === closings[depth]) {
        depth--
        at++
        continue
      }
      if (bytes[at] !== comma) throw invalidJson()
      at = skipWhitespace(bytes, at + 1)
      if (closings[depth] === 0x7d) at = skipMemberName(bytes, at)
      break
    }
  }
}

/** What the parser of other bodies is answered with, too. */
const invalidJson = (): Refusal =>
  new Refusal('invalid', 'The body is not valid JSON', 'Check quotes, commas and encoding')

function assertEndOfInput(bytes: Uint8Array, end: number, start: number): number {
  if (skipWhitespace(bytes, end) !== bytes.length) throw invalidJson()
  return start
}

const skipByteOrderMark = (bytes: Uint8Array): number =>
  bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0

/** Where the next byte is that is no white space. */
export function skipWhitespace(bytes: Uint8Array, at: number): number {
  for (; at < bytes.length; at++) {
    const byte = bytes[at]
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) break
  }
  return at
}

/** From a member's name to its value. */
function skipMemberName(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== quote) throw invalidJson()
  const end = skipWhitespace(bytes, stringEnd(bytes, at + 1))
  if (bytes[end] !== colon) throw invalidJson()
  return skipWhitespace(bytes, end + 1)
}

function stringEnd(bytes: Uint8Array, at: number): number {
  for (;;) {
    while (at < bytes.length && unescapedByte[bytes[at]!] === 1) at++
    if (bytes[at] === quote) return at + 1
    if (bytes[at] !== backslash) throw invalidJson()
    const kind = bytes[at + 1] ?? 0
    if (escapes[kind] === 1) at += 2
    else if (kind === 0x75 && isHex(bytes, at + 2)) at += 6
    else throw invalidJson()
  }
}

function isHex(bytes: Uint8Array, at: number): boolean {
  if (at + 4 > bytes.length) return false
  for (let end = at + 4; at < end; at++) if (hex[bytes[at]!] === 0) return false
  return true
}

function scalarEnd(bytes: Uint8Array, at: number): number {
  const first = bytes[at]
  if (first === quote) return stringEnd(bytes, at + 1)
  if (first === 0x74) return literalEnd(bytes, at, 'true')
  if (first === 0x66) return literalEnd(bytes, at, 'false')
  if (first === 0x6e) return literalEnd(bytes, at, 'null')
  return numberEnd(bytes, at)
}

function literalEnd(bytes: Uint8Array, at: number, word: string): number {
  for (let index = 0; index < word.length; index++) {
    if (bytes[at + index] !== word.charCodeAt(index)) throw invalidJson()
  }
  return at + word.length
}

function numberEnd(bytes: Uint8Array, at: number): number {
  if (bytes[at] === 0x2d) at++
  at = bytes[at] === 0x30 ? at + 1 : digitsEnd(bytes, at)
  if (bytes[at] === 0x2e) at = digitsEnd(bytes, at + 1)
  if (bytes[at] === 0x65 || bytes[at] === 0x45) {
    const sign = bytes[at + 1] === 0x2b || bytes[at + 1] === 0x2d ? 1 : 0
    at = digitsEnd(bytes, at + 1 + sign)
  }
  return at
}

/** At least one digit. */
function digitsEnd(bytes: Uint8Array, start: number): number {
  let at = start
  while (at < bytes.length && digit[bytes[at]!] === 1) at++
  if (at === start) throw invalidJson()
  return at
}
