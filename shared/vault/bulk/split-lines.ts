import { Refusal } from '#shared/core/errors.ts'

export type LineLimits = {
  /** Bytes of one line, its end not counted. */
  lineBytesMax: number
  /** Bytes of the whole file. */
  bytesMax: number
  /** Lines that are not blank. */
  linesMax: number
}

/** One line that is not blank. */
export type RawLine = {
  /** Counted from 1, blank lines included, as an editor counts. */
  number: number
  bytes: Uint8Array
  /** Bytes of the file up to and with the end of this line. */
  end: number
}

const newline = 0x0a
const carriageReturn = 0x0d
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])

/**
 * The lines of a file as its bytes arrive, however they are cut up: LF or CRLF, with or without a byte
 * order mark, the last line with or without an end. Blank lines are left out. No more than one line and
 * one piece of the source is held at a time.
 *
 * @throws Refusal `too-large` as soon as one of the limits is passed.
 */
export async function* splitLines(
  source: AsyncIterable<Uint8Array>,
  limits: LineLimits,
): AsyncGenerator<RawLine> {
  let bytes = 0
  let end = 0
  let number = 0
  let lines = 0
  /** The beginning of a line whose end has not arrived. */
  let buffered: Uint8Array[] = []
  let bufferedBytes = 0

  const append = (part: Uint8Array): void => {
    bufferedBytes += part.length
    // Two more: a line may still end with CR, and the first may begin with a byte order mark.
    if (bufferedBytes > limits.lineBytesMax + 4) throw lineTooLong(number + 1, limits)
    if (part.length > 0) buffered.push(part)
  }
  const line = (): RawLine | undefined => {
    const whole = buffered.length === 1 ? buffered[0]! : Buffer.concat(buffered)
    buffered = []
    bufferedBytes = 0
    number++
    const text = trimLine(whole, number === 1)
    if (text.length > limits.lineBytesMax) throw lineTooLong(number, limits)
    if (isBlank(text)) return undefined
    if (++lines > limits.linesMax) throw tooManyLines(limits)
    return { number, bytes: text, end }
  }

  for await (const piece of source) {
    bytes += piece.length
    if (bytes > limits.bytesMax) throw tooManyBytes(limits)
    let start = 0
    for (;;) {
      const at = piece.indexOf(newline, start)
      append(piece.subarray(start, at === -1 ? piece.length : at))
      if (at === -1) break
      start = at + 1
      end = bytes - piece.length + start
      const whole = line()
      if (whole) yield whole
    }
  }
  end = bytes
  const last = buffered.length > 0 ? line() : undefined
  if (last) yield last
}

function trimLine(line: Uint8Array, first: boolean): Uint8Array {
  const start = first && byteOrderMark.equals(line.subarray(0, 3)) ? 3 : 0
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
