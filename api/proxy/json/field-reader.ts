/** Limits of one value: nesting, number of values in it, and bytes of a name or number. */
const depthMax = 32
const valuesMax = 100_000
const tokenBytesMax = 64

/** An open array or object that is built, and in an object the wanted name that was read last. */
type OpenContainer = { container: Record<string, unknown> | unknown[]; name: string | undefined }

/**
 * Reads JSON as it arrives and builds only the members with the given names: an image of many megabytes
 * costs no memory. It does not check the grammar; of invalid JSON it reads what it can.
 */
export class JsonFieldReader {
  readonly #names: ReadonlySet<string>
  readonly #textMax: number
  readonly #onValue: (value: Record<string, unknown>) => void
  readonly #token = createTokenBuffer()
  readonly #tokenize: (bytes: Uint8Array) => void
  readonly #levels: OpenContainer[] = []
  /** Number of open containers inside a value that is not wanted. */
  #skippedDepth = 0
  #expectsName = false
  #truncated = false
  #values = 0
  #textLeft: number

  /**
   * @param textMax bytes of text that one value may hold
   * @param onValue is called with every complete object: each element of a top-level array, or the only one
   */
  constructor(
    names: ReadonlySet<string>,
    textMax: number,
    onValue: (value: Record<string, unknown>) => void,
  ) {
    this.#names = names
    this.#textMax = textMax
    this.#textLeft = textMax
    this.#onValue = onValue
    this.#tokenize = createTokenizer({
      token: this.#token,
      bytesWanted: () => this.#bytesWanted(),
      onPunctuation: byte => this.#handlePunctuation(byte),
      onString: () => this.#endString(),
      onLiteral: value => this.#append(value),
    })
  }

  /** The next bytes, split anywhere. Never throws. */
  feed(bytes: Uint8Array): void {
    this.#tokenize(bytes)
  }

  /** Whether a limit was reached: a wanted value is missing or incomplete. */
  isTruncated(): boolean {
    return this.#truncated
  }

  /** Whether the next value is built. */
  #isWanted(): boolean {
    if (this.#skippedDepth > 0) return false
    const level = this.#levels.at(-1)
    return !level || Array.isArray(level.container) || level.name !== undefined
  }

  #append(value: unknown): void {
    const level = this.#levels.at(-1)
    if (!level || this.#skippedDepth > 0 || this.#isTopLevelArray()) return
    if (++this.#values > valuesMax) this.#truncated = true
    else if (Array.isArray(level.container)) level.container.push(value)
    else if (level.name !== undefined) level.container[level.name] = value
  }

  /** Whether the innermost open container is an array that nothing contains. */
  #isTopLevelArray(): boolean {
    return this.#levels.length === 1 && Array.isArray(this.#levels[0]!.container)
  }

  #open(container: OpenContainer['container']): void {
    this.#expectsName = !Array.isArray(container)
    if (!this.#isWanted() || this.#levels.length === depthMax) this.#skippedDepth++
    else {
      this.#append(container)
      this.#levels.push({ container, name: undefined })
    }
  }

  #close(): void {
    this.#expectsName = false
    if (this.#skippedDepth > 0) {
      this.#skippedDepth--
      return
    }
    const closed = this.#levels.pop()?.container
    if (!closed || Array.isArray(closed)) return
    if (this.#levels.length > 0 && !this.#isTopLevelArray()) return
    this.#values = 0
    this.#textLeft = this.#textMax
    this.#onValue(closed)
  }

  #handlePunctuation(byte: number): void {
    if (byte === 0x7b) this.#open({})
    else if (byte === 0x5b) this.#open([])
    else if (byte === 0x7d || byte === 0x5d) this.#close()
    else if (byte === 0x2c)
      this.#expectsName =
        this.#skippedDepth === 0 && !Array.isArray(this.#levels.at(-1)?.container ?? [])
    else if (byte === 0x3a) this.#expectsName = false
  }

  #endString(): void {
    const level = this.#levels.at(-1)
    if (this.#expectsName) {
      const name = this.#token.decodeString()
      if (level && this.#skippedDepth === 0) level.name = this.#names.has(name) ? name : undefined
      this.#expectsName = false
    } else if (this.#isWanted()) {
      this.#textLeft -= this.#token.length()
      this.#truncated ||= this.#token.isTruncated()
      this.#append(this.#token.decodeString())
    }
  }

  /** How many bytes of the string that begins are to be buffered. */
  #bytesWanted(): number {
    if (this.#skippedDepth > 0) return 0
    if (this.#expectsName) return tokenBytesMax
    return this.#isWanted() ? this.#textLeft : 0
  }
}

type TokenHandlers = {
  token: TokenBuffer
  /** How many bytes of the string that begins are to be buffered. */
  bytesWanted(): number
  onPunctuation(byte: number): void
  onString(): void
  onLiteral(value: unknown): void
}

const quote = 0x22
const backslash = 0x5c

/** The bytes of numbers, `true`, `false` and `null`. */
const literalByte = new Uint8Array(256)
for (const byte of Buffer.from('+-.0123456789Eaeflnrstu')) literalByte[byte] = 1

/** Splits bytes into strings, literals and punctuation; chunks may end anywhere. */
function createTokenizer(handlers: TokenHandlers): (bytes: Uint8Array) => void {
  const { token } = handlers
  let reading: 'string' | 'literal' | undefined
  let escaped = false

  const stringEnd = (bytes: Uint8Array, at: number): number => {
    for (; at < bytes.length; at++) {
      const byte = bytes[at]
      if (escaped) escaped = false
      else if (byte === backslash) escaped = true
      else if (byte === quote) break
    }
    return at
  }
  const literalEnd = (bytes: Uint8Array, at: number): number => {
    while (at < bytes.length && literalByte[bytes[at]!] === 1) at++
    return at
  }
  return bytes => {
    for (let at = 0; at < bytes.length;) {
      if (reading === undefined) {
        const byte = bytes[at]!
        if (literalByte[byte] === 1) {
          reading = 'literal'
          token.reset(tokenBytesMax)
          continue
        }
        at++
        if (byte === quote) {
          reading = 'string'
          token.reset(handlers.bytesWanted())
        } else handlers.onPunctuation(byte)
        continue
      }
      const end = reading === 'string' ? stringEnd(bytes, at) : literalEnd(bytes, at)
      token.append(bytes, at, end)
      at = end
      if (at === bytes.length) return
      if (reading === 'string') {
        at++
        handlers.onString()
      } else handlers.onLiteral(token.decodeLiteral())
      reading = undefined
    }
  }
}

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

function createTokenBuffer(): TokenBuffer {
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
