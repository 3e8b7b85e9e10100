import { splitLines } from '#shared/vault/bulk/split-lines.ts'

/** Some lines of a file that the service takes in one go. */
export type UploadPart = {
  /** Counted from 0. */
  index: number
  body: Buffer
  /** Where each line of the part stands in the file, counted from 1. */
  lineNumbers: number[]
  /** Lines of the file that are too long for any part. */
  oversizedLines: number[]
  /** Where the next part begins: bytes of the file, and lines. */
  endOffset: number
  endLine: number
}

export type PartLimits = { linesMax: number; bytesMax: number; lineBytesMax: number }

/** Where a file is read from. */
export type StartPosition = { index: number; offset: number; line: number }

/**
 * A file in parts that keep the limits, the last one shorter. Only one part is held at a time.
 *
 * @param source the file's bytes from `from.offset` on
 */
export async function* splitIntoParts(
  source: AsyncIterable<Uint8Array>,
  limits: PartLimits,
  from: StartPosition,
): AsyncGenerator<UploadPart> {
  const unlimited = { lineBytesMax: Infinity, bytesMax: Infinity, linesMax: Infinity }
  let lines: Uint8Array[] = []
  let numbers: number[] = []
  let tooLong: number[] = []
  let bytes = 0
  let { index, offset: end, line: lineEnd } = from

  const finishPart = (): UploadPart => {
    const body = Buffer.concat(lines.flatMap(line => [line, newline]))
    const part = {
      index: index++,
      body,
      lineNumbers: numbers,
      oversizedLines: tooLong,
      endOffset: end,
      endLine: lineEnd,
    }
    lines = []
    numbers = []
    tooLong = []
    bytes = 0
    return part
  }
  for await (const line of splitLines(source, unlimited)) {
    const fits = line.bytes.length <= limits.lineBytesMax
    const size = line.bytes.length + 1
    if (fits && (lines.length === limits.linesMax || bytes + size > limits.bytesMax))
      yield finishPart()
    end = from.offset + line.end
    lineEnd = from.line + line.number
    if (!fits) {
      tooLong.push(lineEnd)
      continue
    }
    lines.push(line.bytes)
    numbers.push(lineEnd)
    bytes += size
  }
  if (lines.length > 0 || tooLong.length > 0) yield finishPart()
}

const newline = Buffer.from('\n')
