import { BodyBytes } from '#api/edge/body-stream.ts'
import { endingQuote } from '#shared/core/json-walk.ts'

/** Limits of one value: nesting, number of values in it, and bytes of a name or number. */
const depthMax = 32
const valuesMax = 100_000
const tokenBytesMax = 64

/** An open array or object that is built, and in an object the wanted name that was read last. */
type OpenContainer = { container: Record<string, unknown> | unknown[]; name: string | undefined }

const quote = 0x22

/** The bytes of numbers, `true`, `false` and `null`. */
const literalByte = new Uint8Array(256)
for (const byte of Buffer.from('+-.0123456789Eaeflnrstu')) literalByte[byte] = 1

/**
 * Reads JSON as it arrives and builds only the members with the given names: an image of many megabytes
 * costs no memory. It does not check the grammar; of invalid JSON it reads what it can.
 */
export class JsonFieldReader {
  readonly #names: ReadonlySet<string>
  readonly #textMax: number
  readonly #onValue: (value: Record<string, unknown>) => void
  readonly #levels: OpenContainer[] = []
  /** The text or literal that is being read: what earlier chunks have of it, and how many more bytes are taken. */
  #reading: 'text' | 'literal' | undefined
  #earlier: BodyBytes | undefined
  #tokenBytesLeft = 0
  #isTokenCut = false
  /** How many bytes of the next chunk belong to an escape that has begun. */
  #ahead = 0
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
  }

  /** The next bytes, split anywhere. Never throws. */
  feed({ buffer, byteOffset, length }: Uint8Array): void {
    const bytes = Buffer.from(buffer as ArrayBuffer, byteOffset, length)
    for (let at = 0; at < length;) {
      const byte = bytes[at]!
      if (this.#reading === 'text') at = this.#readText(bytes, at)
      else if (this.#reading === 'literal') at = this.#readLiteral(bytes, at)
      else if (literalByte[byte] === 1) this.#begin('literal', tokenBytesMax)
      else {
        at++
        if (byte === quote) this.#begin('text', this.#textBytesWanted())
        else this.#handlePunctuation(byte)
      }
    }
  }

  /** Whether a limit was reached: a wanted value is missing or incomplete. */
  isTruncated(): boolean {
    return this.#truncated
  }

  #begin(reading: 'text' | 'literal', bytesMax: number): void {
    this.#reading = reading
    this.#earlier = undefined
    this.#tokenBytesLeft = bytesMax
    this.#isTokenCut = false
  }

  #readText(bytes: Buffer, start: number): number {
    const end = endingQuote(bytes, start + this.#ahead)
    this.#ahead = Math.max(0, end - bytes.length)
    const token = this.#take(bytes, start, end)
    if (token) this.#endText(token)
    return end + 1
  }

  #readLiteral(bytes: Buffer, start: number): number {
    let end = start
    while (end < bytes.length && literalByte[bytes[end]!] === 1) end++
    const token = this.#take(bytes, start, end)
    if (token && this.#isWanted()) this.#append(parseLiteral(token))
    return end
  }

  /** Takes the bytes of a token in one chunk. @returns the token when it ends in this chunk: then nothing was copied. */
  #take(bytes: Buffer, start: number, end: number): Buffer | undefined {
    const last = Math.min(end, bytes.length)
    const taken = bytes.subarray(start, Math.min(last, start + this.#tokenBytesLeft))
    this.#isTokenCut ||= taken.length < last - start
    this.#tokenBytesLeft -= taken.length
    if (end >= bytes.length) {
      this.#earlier ??= new BodyBytes()
      this.#earlier.push(Buffer.from(taken))
      return undefined
    }
    this.#reading = undefined
    if (!this.#earlier) return taken
    this.#earlier.push(taken)
    return this.#earlier.toBuffer()
  }

  #endText(token: Buffer): void {
    const level = this.#levels.at(-1)
    if (this.#expectsName) {
      const name = decodeText(token, this.#isTokenCut)
      if (level && this.#skippedDepth === 0) level.name = this.#names.has(name) ? name : undefined
      this.#expectsName = false
    } else if (this.#isWanted()) {
      this.#textLeft = this.#tokenBytesLeft
      this.#truncated ||= this.#isTokenCut
      this.#append(decodeText(token, this.#isTokenCut))
    }
  }

  /** How many bytes of the text that begins are to be taken. */
  #textBytesWanted(): number {
    if (this.#skippedDepth > 0) return 0
    if (this.#expectsName) return tokenBytesMax
    return this.#isWanted() ? this.#textLeft : 0
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
}

/** The number, boolean or null; undefined for anything else. */
function parseLiteral(token: Buffer): unknown {
  try {
    return JSON.parse(token.toString('latin1')) as unknown
  } catch {
    return undefined
  }
}

/** Length of the longest escape, `\u0000`: a cut may have left one incomplete. */
const escapeMax = 6

/** The text without its escapes; of one that was cut, up to the last whole character. */
function decodeText(token: Buffer, isCut: boolean): string {
  const text = token.toString('utf8')
  const raw = isCut ? text.replace(/\uFFFD$/, '') : text
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
