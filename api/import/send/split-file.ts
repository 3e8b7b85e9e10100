import { joinBytes, splitLines, type LineLimits } from '#shared/vault/bulk/split-lines.ts'

/** Lines of a file that are sent in one request. */
export type UploadPart = {
  /** Counted from 0. */
  index: number
  body: Uint8Array<ArrayBuffer>
  /** The number of each line in the file, counted from 1. */
  lineNumbers: number[]
  /** Lines of the file that are too long for any part. */
  oversizedLines: number[]
  /** Where the next part starts: byte offset and number of lines before it. */
  endOffset: number
  endLine: number
}

export type PartLimits = LineLimits

/** Where reading of the file starts: number of the part, byte offset, lines before it. */
export type StartPosition = { index: number; offset: number; line: number }

/**
 * Splits a file into parts within the limits. Only one part is in memory at a time.
 *
 * @param source the file's bytes from `from.offset` on
 */
export async function* splitIntoParts(
  source: AsyncIterable<Uint8Array>,
  limits: PartLimits,
  from: StartPosition,
): AsyncGenerator<UploadPart> {
  const ofWholeFile = { ...limits, bytesMax: Infinity, linesMax: Infinity }
  let lines: Uint8Array[] = []
  let numbers: number[] = []
  let oversizedLines: number[] = []
  let bytes = 0
  let { index, offset: end, line: lineEnd } = from

  const finishPart = (): UploadPart => {
    const body = joinBytes(lines.flatMap(line => [line, newline]))
    const part = {
      index: index++,
      body,
      lineNumbers: numbers,
      oversizedLines,
      endOffset: end,
      endLine: lineEnd,
    }
    lines = []
    numbers = []
    oversizedLines = []
    bytes = 0
    return part
  }
  for await (const line of splitLines(source, ofWholeFile)) {
    const fits = !line.isTooLong
    const size = line.bytes.length + 1
    if (fits && (lines.length === limits.linesMax || bytes + size > limits.bytesMax))
      yield finishPart()
    end = from.offset + line.end
    lineEnd = from.line + line.number
    if (!fits) {
      oversizedLines.push(lineEnd)
      continue
    }
    lines.push(line.bytes)
    numbers.push(lineEnd)
    bytes += size
  }
  if (lines.length > 0 || oversizedLines.length > 0) yield finishPart()
}

const newline = new TextEncoder().encode('\n')
