import { Refusal } from '#shared/core/errors.ts'

export type LineLimits = {
  /** Bytes of one line without its line break. */
  lineBytesMax: number
  /** Bytes of the whole file. */
  bytesMax: number
  /** Counts lines that are not blank. */
  linesMax: number
}

/** A line that is not blank. */
export type RawLine = {
  /** From 1, blank lines included, as editors count. */
  number: number
  bytes: Uint8Array
  /** Bytes of the file up to and including this line's break. */
  end: number
}

const newline = 0x0a
const carriageReturn = 0x0d
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])

/**
 * Splits a stream of bytes into lines: LF or CRLF, with or without a byte order mark, the last line with or
 * without a line break. Blank lines are left out. Memory holds at most one line and one chunk of the source.
 *
 * @throws Refusal `too-large` as soon as a limit is exceeded.
 */
export async function* splitLines(
  source: AsyncIterable<Uint8Array>,
  limits: LineLimits,
): AsyncGenerator<RawLine> {
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
    if (bufferedBytes > limits.lineBytesMax + 4) throw lineTooLong(number + 1, limits)
    if (part.length > 0) buffered.push(part)
  }
  const line = (): RawLine | undefined => {
    const bytesOfLine = buffered.length === 1 ? buffered[0]! : Buffer.concat(buffered)
    buffered = []
    bufferedBytes = 0
    number++
    const text = trimLine(bytesOfLine, number === 1)
    if (text.length > limits.lineBytesMax) throw lineTooLong(number, limits)
    if (isBlank(text)) return undefined
    if (++lines > limits.linesMax) throw tooManyLines(limits)
    return { number, bytes: text, end }
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
  const last = buffered.length > 0 ? line() : undefined
  if (last) yield last
}

function trimLine(line: Uint8Array, isFirst: boolean): Uint8Array {
  const start = isFirst && byteOrderMark.equals(line.subarray(0, 3)) ? 3 : 0
  const end = line.at(-1) === carriageReturn ? line.length - 1 : line.length
  return line.subarray(start, Math.max(start, end))
}

const isBlank = (line: Uint8Array): boolean =>
  line.every(byte => byte === 0x20 || byte === 0x09 || byte === carriageReturn)

const lineTooLong = (number: number, { lineBytesMax }: LineLimits): Refusal =>
  new Refusal(
    'too-large',
    `Line ${number} is longer than ${sizeOf(lineBytesMax)}`,
    'Nothing was stored; shorten the line and send the file again',
  )

const tooManyLines = ({ linesMax }: LineLimits): Refusal =>
  new Refusal(
    'too-large',
    `The file has more than ${linesMax.toLocaleString('en')} lines`,
    'Nothing was stored; send it in parts',
  )

const tooManyBytes = ({ bytesMax }: LineLimits): Refusal =>
  new Refusal(
    'too-large',
    `The file is larger than ${sizeOf(bytesMax)}`,
    'Nothing was stored; send it in parts',
  )

const sizeOf = (bytes: number): string =>
  bytes >= 1024 * 1024 ? `${bytes / (1024 * 1024)} MiB` : `${bytes / 1024} KiB`
