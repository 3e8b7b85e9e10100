import { Refusal } from '#shared/core/errors.ts'

export type LineLimits = {
  /** Bytes of one line without its line break. */
  lineBytesMax: number
  /** Bytes of one line that is within that limit once its escapes count as what they stand for; no others, when missing. */
  escapedBytesMax?: number
  /** Bytes of the whole file. */
  bytesMax: number
  /** Counts lines that are not blank. */
  linesMax: number
}

/** A line that is not blank, that is: has more than white space. U+200B is a character. */
export type RawLine = {
  /** From 1, blank lines included, as editors count. */
  number: number
  bytes: Uint8Array
  /** Longer than the limit: its bytes are left out. */
  isTooLong: boolean
  /** Bytes of the file up to and including this line's break. */
  end: number
}

const newline = 0x0a
const carriageReturn = 0x0d
/** Begins every line of application/json-seq. */
const recordSeparator = 0x1e
const noBytes = new Uint8Array()
const byteOrderMark = [0xef, 0xbb, 0xbf]

/**
 * Splits a stream of bytes into lines: LF or CRLF, with or without a byte order mark. Leaves out blank lines.
 * Holds at most one line and one chunk of the source in memory.
 *
 * @throws Refusal `too-large` as soon as the file has too many lines or bytes.
 */
export async function* splitLines(
  source: AsyncIterable<Uint8Array>,
  limits: LineLimits,
): AsyncGenerator<RawLine> {
  const { lineBytesMax, escapedBytesMax = lineBytesMax } = limits
  let bytes = 0
  let end = 0
  let number = 0
  let lines = 0
  /** The beginning of a line whose line break has not arrived. */
  let buffered: Uint8Array[] = []
  let bufferedBytes = 0

  const append = (part: Uint8Array): void => {
    bufferedBytes += part.length
    // Up to 4 more: the first line may begin with a byte order mark, and a line may end with CR.
    if (bufferedBytes > escapedBytesMax + 4) buffered = []
    else if (part.length > 0) buffered.push(part)
  }
  const line = (): RawLine | undefined => {
    const bytesOfLine = buffered.length === 1 ? buffered[0]! : joinBytes(buffered)
    number++
    const text = trimLine(bytesOfLine, number === 1)
    const isTooLong =
      bufferedBytes > escapedBytesMax + 4 ||
      text.length > escapedBytesMax ||
      (text.length > lineBytesMax && unescapedLength(text) > lineBytesMax)
    buffered = []
    bufferedBytes = 0
    if (!isTooLong && isBlank(text)) return undefined
    if (++lines > limits.linesMax) throw tooManyLines(limits)
    return { number, bytes: isTooLong ? noBytes : text, isTooLong, end }
  }

  for await (const chunk of source) {
    bytes += chunk.length
    if (bytes > limits.bytesMax) throw tooManyBytes(limits)
    let start = 0
    for (;;) {
      const at = chunk.indexOf(newline, start)
      append(chunk.subarray(start, at === -1 ? chunk.length : at))
      if (at === -1) break
      start = at + 1
      end = bytes - chunk.length + start
      const complete = line()
      if (complete) yield complete
    }
  }
  end = bytes
  const last = bufferedBytes > 0 ? line() : undefined
  if (last) yield last
}

/** As `Buffer.concat`, which browsers lack. */
export function joinBytes(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    joined.set(part, at)
    at += part.length
  }
  return joined
}

function trimLine(line: Uint8Array, isFirst: boolean): Uint8Array {
  const markEnd = isFirst && byteOrderMark.every((byte, at) => line[at] === byte) ? 3 : 0
  const start = line[markEnd] === recordSeparator ? markEnd + 1 : markEnd
  const end = line.at(-1) === carriageReturn ? line.length - 1 : line.length
  return line.subarray(start, Math.max(start, end))
}

const backslash = 0x5c
const letterU = 0x75

/** The bytes of JSON with each escape as the character it stands for, in UTF-8. */
function unescapedLength(line: Uint8Array): number {
  let length = line.length
  for (let at = line.indexOf(backslash); at >= 0;) {
    const isUnicode = line[at + 1] === letterU
    const escapeEnd = at + (isUnicode ? 6 : 2)
    length -= isUnicode ? 6 - utf8Length(line, at + 2) : 1
    at = line.indexOf(backslash, escapeEnd)
  }
  return length
}

/** Bytes in UTF-8 of the code unit of four hexadecimal digits; each half of a surrogate pair has two. */
function utf8Length(line: Uint8Array, digits: number): number {
  const unit = Number.parseInt(String.fromCharCode(...line.subarray(digits, digits + 4)), 16)
  if (unit < 0x80) return 1
  return unit < 0x800 || (unit >= 0xd800 && unit < 0xe000) ? 2 : 3
}

const isBlank = (line: Uint8Array): boolean =>
  line.every(byte => byte === 0x20 || byte === 0x09 || byte === carriageReturn)

/** The error of a line that is too long. */
export const lineTooLong = ({ lineBytesMax }: LineLimits): string =>
  `longer than ${sizeOf(lineBytesMax)}`

const tooManyLines = ({ linesMax }: LineLimits): Refusal =>
  fileTooLarge(`The file has more than ${linesMax.toLocaleString('en')} lines`)

const tooManyBytes = ({ bytesMax }: LineLimits): Refusal =>
  fileTooLarge(`The file is larger than ${sizeOf(bytesMax)}`)

const fileTooLarge = (message: string): Refusal =>
  new Refusal('too-large', message, 'Nothing was stored; send it in parts')

const sizeOf = (bytes: number): string =>
  bytes >= 1024 * 1024 ? `${bytes / (1024 * 1024)} MiB` : `${bytes / 1024} KiB`
