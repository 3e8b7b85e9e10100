/** The raw bytes of one JSON string or literal while they arrive; reused for the next token. */
export type TokenBuffer = {
  /** Empties the buffer; it then takes up to `max` bytes and ignores the rest. */
  reset(max: number): void
  append(bytes: Uint8Array, start: number, end: number): void
  length(): number
  /** Whether more bytes came than the maximum. */
  isTruncated(): boolean
  /** The string, without its escapes, up to the maximum. */
  decodeString(): string
  /** The number, boolean or null; undefined for anything else. */
  decodeLiteral(): unknown
}

/** A larger buffer is released after its token. */
const reusableBytesMax = 64 * 1024

export function createTokenBuffer(): TokenBuffer {
  let buffer = Buffer.allocUnsafe(256)
  let length = 0
  let max = 0
  let truncated = false
  return {
    reset(bytesMax) {
      if (buffer.length > reusableBytesMax) buffer = Buffer.allocUnsafe(256)
      length = 0
      max = bytesMax
      truncated = false
    },
    append(bytes, start, end) {
      const byteCount = Math.min(end - start, max - length)
      if (byteCount < end - start) truncated = true
      if (byteCount <= 0) return
      if (length + byteCount > buffer.length) {
        const larger = Buffer.allocUnsafe(Math.max(2 * buffer.length, length + byteCount))
        buffer.copy(larger, 0, 0, length)
        buffer = larger
      }
      buffer.set(bytes.subarray(start, start + byteCount), length)
      length += byteCount
    },
    length: () => length,
    isTruncated: () => truncated,
    decodeString() {
      const raw = buffer.toString('utf8', 0, length)
      return decodeEscapes(truncated ? raw.replace(/\uFFFD$/, '') : raw)
    },
    decodeLiteral() {
      try {
        return JSON.parse(buffer.toString('latin1', 0, length)) as unknown
      } catch {
        return undefined
      }
    },
  }
}

/** Length of the longest escape, `\u0000`: truncation may have left one incomplete. */
const escapeMax = 6

function decodeEscapes(raw: string): string {
  if (!raw.includes('\\')) return raw
  for (let unfinished = 0; unfinished < escapeMax; unfinished++) {
    try {
      return JSON.parse(`"${raw.slice(0, raw.length - unfinished)}"`) as string
    } catch {
      continue
    }
  }
  return raw
}
