import { createTokenBuffer, type TokenBuffer } from '#api/proxy/json/token-buffer.ts'

/** Limits of one value: nesting, number of values in it, and bytes of a name or number. */
const depthMax = 32
const valuesMax = 100_000
const tokenBytesMax = 64

export type JsonFieldReader = {
  /** The next bytes, split anywhere. Never throws. */
  feed(bytes: Uint8Array): void
  /** Whether a limit was reached: a wanted value is missing or incomplete. */
  isTruncated(): boolean
}

/** An open array or object that is built, and in an object the wanted name that was read last. */
type OpenContainer = { container: Record<string, unknown> | unknown[]; name: string | undefined }

/**
 * Reads JSON as it arrives and builds only the members with the given names: an image of many megabytes
 * costs no memory. It does not check the grammar; of invalid JSON it reads what it can.
 *
 * @param textMax bytes of text that one value may hold
 * @param onValue is called with every complete object: each element of a top-level array, or the only one
 */
export function createJsonFieldReader(
  names: ReadonlySet<string>,
  textMax: number,
  onValue: (value: Record<string, unknown>) => void,
): JsonFieldReader {
  const levels: OpenContainer[] = []
  /** Number of open containers inside a value that is not wanted. */
  let skippedDepth = 0
  let expectsName = false
  let truncated = false
  let values = 0
  let textLeft = textMax

  /** Whether the next value is built. */
  const isWanted = (): boolean => {
    if (skippedDepth > 0) return false
    const level = levels.at(-1)
    return !level || Array.isArray(level.container) || level.name !== undefined
  }
  const append = (value: unknown): void => {
    const level = levels.at(-1)
    if (!level || skippedDepth > 0 || (levels.length === 1 && Array.isArray(level.container)))
      return
    if (++values > valuesMax) truncated = true
    else if (Array.isArray(level.container)) level.container.push(value)
    else if (level.name !== undefined) level.container[level.name] = value
  }
  const open = (container: OpenContainer['container']): void => {
    expectsName = !Array.isArray(container)
    if (!isWanted() || levels.length === depthMax) skippedDepth++
    else {
      append(container)
      levels.push({ container, name: undefined })
    }
  }
  const close = (): void => {
    expectsName = false
    if (skippedDepth > 0) {
      skippedDepth--
      return
    }
    const closed = levels.pop()?.container
    if (!closed || Array.isArray(closed)) return
    const isElement = levels.length === 1 && Array.isArray(levels[0]!.container)
    if (levels.length > 0 && !isElement) return
    values = 0
    textLeft = textMax
    onValue(closed)
  }
  const handlePunctuation = (byte: number): void => {
    if (byte === 0x7b) open({})
    else if (byte === 0x5b) open([])
    else if (byte === 0x7d || byte === 0x5d) close()
    else if (byte === 0x2c)
      expectsName = skippedDepth === 0 && !Array.isArray(levels.at(-1)?.container ?? [])
    else if (byte === 0x3a) expectsName = false
  }

  const token = createTokenBuffer()
  const endString = (): void => {
    const level = levels.at(-1)
    if (expectsName) {
      const name = token.decodeString()
      if (level && skippedDepth === 0) level.name = names.has(name) ? name : undefined
      expectsName = false
    } else if (isWanted()) {
      textLeft -= token.length()
      truncated ||= token.isTruncated()
      append(token.decodeString())
    }
  }
  const bytesWanted = (): number =>
    skippedDepth > 0 ? 0 : expectsName ? tokenBytesMax : isWanted() ? textLeft : 0

  return {
    feed: createTokenizer({
      token,
      bytesWanted,
      onPunctuation: handlePunctuation,
      onString: endString,
      onLiteral: append,
    }),
    isTruncated: () => truncated,
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
