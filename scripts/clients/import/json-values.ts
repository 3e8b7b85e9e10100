import { Refusal } from '#shared/core/errors.ts'

/** The largest single value: one conversation, or a file that is one object. */
const valueBytesMax = 256 * 1024 * 1024

const [quote, backslash, comma, openBracket, closeBracket] = [0x22, 0x5c, 0x2c, 0x5b, 0x5d]
const [openBrace, closeBrace] = [0x7b, 0x7d]

/**
 * The values of JSON as it arrives: the elements of a top-level array one by one, and every other top-level
 * value whole, so JSON lines are read too. Memory holds one value at a time.
 *
 * @param name of the file, for errors
 * @throws Refusal `invalid` for what is no JSON, for a file that ends early, and for a value over 256 MiB.
 */
export async function* readJsonValues(
  source: AsyncIterable<Uint8Array>,
  name: string,
): AsyncGenerator {
  const scanner = new ValueScanner(name)
  for await (const chunk of asUtf8(source)) {
    for (const value of scanner.feed(chunk)) yield parseValue(value, name)
  }
  const last = scanner.end()
  if (last) yield parseValue(last, name)
}

/** The bytes in UTF-8, also of a file in UTF-16 that says so: PowerShell writes such ones. */
async function* asUtf8(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let decoder: TextDecoder | undefined
  let isFirst = true
  for await (const chunk of source) {
    if (isFirst && chunk[0] === 0xff && chunk[1] === 0xfe) decoder = new TextDecoder('utf-16le')
    if (isFirst && chunk[0] === 0xfe && chunk[1] === 0xff) decoder = new TextDecoder('utf-16be')
    isFirst = false
    yield decoder ? Buffer.from(decoder.decode(chunk, { stream: true })) : chunk
  }
}

type Value = { bytes: Buffer; at: number }

function parseValue({ bytes, at }: Value, name: string): unknown {
  const text = bytes.toString('utf8')
  try {
    return parseExactJson(text)
  } catch {
    const start = JSON.stringify(text.slice(0, 30))
    throw new Refusal('invalid', `${name} is not JSON at byte ${at.toLocaleString('en')}: ${start}`)
  }
}

/**
 * JSON whose whole numbers of 16 and more digits beyond 2^53, such as ids of 64 bits, become texts with all of
 * their digits. The NaN and Infinity that Python writes are null.
 *
 * @throws SyntaxError
 */
export function parseExactJson(text: string): unknown {
  try {
    return /\d{16}/.test(text) ? JSON.parse(text, exactNumber) : JSON.parse(text)
  } catch (error) {
    const plain = text.replaceAll(/"[^"\\]*(?:\\[^][^"\\]*)*"?|-?\b(?:NaN|Infinity)\b/g, token =>
      token.startsWith('"') ? token : 'null',
    )
    if (plain === text) throw error
    return parseExactJson(plain)
  }
}

const exactNumber = (_name: string, value: unknown, read?: { source: string }): unknown =>
  typeof value === 'number' && Math.abs(value) > Number.MAX_SAFE_INTEGER ? read!.source : value

/** Splits bytes into JSON values by their brackets and quotes; chunks may end anywhere. */
class ValueScanner {
  readonly #name: string
  #inArray = false
  #kind: 'none' | 'container' | 'string' | 'scalar' = 'none'
  #depth = 0
  #inString = false
  #escaped = false
  #parts: Uint8Array[] = []
  #bytes = 0
  /** Bytes of earlier chunks. */
  #offset = 0

  constructor(name: string) {
    this.#name = name
  }

  *feed(chunk: Uint8Array): Generator<Value> {
    let start = 0
    for (let at = 0; at < chunk.length;) {
      if (this.#kind === 'none') {
        if (this.#beginsValue(chunk[at]!)) start = at
        else at++
        continue
      }
      const end = this.#valueEnd(chunk, at)
      if (end === -1) break
      yield this.#take(chunk.subarray(start, end), end)
      at = end
    }
    if (this.#kind !== 'none') this.#keep(chunk.subarray(start))
    this.#offset += chunk.length
  }

  /** @returns a number or literal that ends with the file. */
  end(): Value | undefined {
    if (this.#inArray || this.#kind === 'container' || this.#kind === 'string') {
      throw new Refusal(
        'invalid',
        `${this.#name} ends in the middle of a value`,
        'It is incomplete: download the export again',
      )
    }
    return this.#kind === 'scalar' ? this.#take(new Uint8Array(), 0) : undefined
  }

  #beginsValue(byte: number): boolean {
    const skipped = byte <= 0x20 || byte === comma || (this.#offset < 3 && isByteOrderMark(byte))
    if (skipped) return false
    if (byte === openBracket && !this.#inArray) {
      this.#inArray = true
      return false
    }
    if (byte === closeBracket && this.#inArray) {
      this.#inArray = false
      return false
    }
    const opens = byte === openBrace || byte === openBracket
    this.#kind = opens ? 'container' : byte === quote ? 'string' : 'scalar'
    this.#depth = 0
    this.#inString = false
    return true
  }

  /** @returns where the value ends; -1 when that is not in this chunk. */
  #valueEnd(chunk: Uint8Array, from: number): number {
    for (let at = from; at < chunk.length; at++) {
      const byte = chunk[at]!
      if (this.#inString) {
        if (this.#escaped) this.#escaped = false
        else if (byte === backslash) this.#escaped = true
        else if (byte === quote) {
          this.#inString = false
          if (this.#kind === 'string') return at + 1
        }
      } else if (byte === quote) this.#inString = true
      else if (this.#kind === 'scalar') {
        if (byte <= 0x20 || byte === comma || byte === closeBracket) return at
      } else if (byte === openBrace || byte === openBracket) this.#depth++
      else if ((byte === closeBrace || byte === closeBracket) && --this.#depth === 0) return at + 1
    }
    return -1
  }

  #keep(part: Uint8Array): void {
    this.#bytes += part.length
    if (this.#bytes > valueBytesMax) {
      throw new Refusal(
        'too-large',
        `${this.#name} has a single value of more than 256 MiB`,
        'Split the file: one JSON object a line, or an array of smaller objects',
      )
    }
    this.#parts.push(Uint8Array.from(part))
  }

  #take(part: Uint8Array, end: number): Value {
    const bytes = Buffer.concat([...this.#parts, part])
    this.#parts = []
    this.#bytes = 0
    this.#kind = 'none'
    return { bytes, at: this.#offset + end - bytes.length }
  }
}

const isByteOrderMark = (byte: number): boolean => byte === 0xef || byte === 0xbb || byte === 0xbf
