import { createScratch, type Scratch } from '#api/proxy/json/scratch.ts'

/** How deep one value is read, of how many values it may consist, and how long a name or number is. */
const depthMax = 32
const valuesMax = 100_000
const wordMax = 64

export type Picker = {
  /** The next bytes, split anywhere. Never throws. */
  feed(bytes: Uint8Array): void
  /** Whether a limit was reached: something that was wanted is missing, or not all there. */
  truncated(): boolean
}

/** A container that is kept, and in an object the wanted name that was read last. */
type Level = { into: Record<string, unknown> | unknown[]; name: string | undefined }

/**
 * Reads JSON as it arrives, keeping only members with the given names: pictures of many megabytes go by
 * and cost no memory. It does not judge the grammar; of broken JSON it makes what it can.
 *
 * @param textMax bytes of text that one value may keep.
 * @param onValue is told every object that is complete: each element of an array, or the whole.
 */
export function createPicker(
  names: ReadonlySet<string>,
  textMax: number,
  onValue: (value: Record<string, unknown>) => void,
): Picker {
  const levels: Level[] = []
  /** Open containers within something that is not wanted. */
  let skipped = 0
  let nameDue = false
  let truncated = false
  let values = 0
  let textLeft = textMax

  /** Whether the next value is kept. */
  const wanted = (): boolean => {
    if (skipped > 0) return false
    const level = levels.at(-1)
    return !level || Array.isArray(level.into) || level.name !== undefined
  }
  const put = (value: unknown): void => {
    const level = levels.at(-1)
    if (!level || skipped > 0 || (levels.length === 1 && Array.isArray(level.into))) return
    if (++values > valuesMax) truncated = true
    else if (Array.isArray(level.into)) level.into.push(value)
    else if (level.name !== undefined) level.into[level.name] = value
  }
  const open = (into: Level['into']): void => {
    nameDue = !Array.isArray(into)
    if (!wanted() || levels.length === depthMax) skipped++
    else {
      put(into)
      levels.push({ into, name: undefined })
    }
  }
  const close = (): void => {
    nameDue = false
    if (skipped > 0) {
      skipped--
      return
    }
    const closed = levels.pop()?.into
    if (!closed || Array.isArray(closed)) return
    const isElement = levels.length === 1 && Array.isArray(levels[0]!.into)
    if (levels.length > 0 && !isElement) return
    values = 0
    textLeft = textMax
    onValue(closed)
  }
  const mark = (byte: number): void => {
    if (byte === 0x7b) open({})
    else if (byte === 0x5b) open([])
    else if (byte === 0x7d || byte === 0x5d) close()
    else if (byte === 0x2c) nameDue = skipped === 0 && !Array.isArray(levels.at(-1)?.into ?? [])
    else if (byte === 0x3a) nameDue = false
  }

  const scratch = createScratch()
  const endString = (): void => {
    const level = levels.at(-1)
    if (nameDue) {
      const name = scratch.string()
      if (level && skipped === 0) level.name = names.has(name) ? name : undefined
      nameDue = false
    } else if (wanted()) {
      textLeft -= scratch.length()
      truncated ||= scratch.isCut()
      put(scratch.string())
    }
  }
  const room = (): number => (skipped > 0 ? 0 : nameDue ? wordMax : wanted() ? textLeft : 0)

  return {
    feed: tokenized({ scratch, room, mark, endString, endWord: put }),
    truncated: () => truncated,
  }
}

type Tokens = {
  scratch: Scratch
  /** How many bytes of the string that begins are worth keeping. */
  room(): number
  mark(byte: number): void
  endString(): void
  endWord(value: unknown): void
}

const quote = 0x22
const backslash = 0x5c

/** The bytes of numbers, `true`, `false` and `null`. */
const wordByte = new Uint8Array(256)
for (const byte of Buffer.from('+-.0123456789Eaeflnrstu')) wordByte[byte] = 1

/** Splits bytes into strings, words and marks, wherever they are split. */
function tokenized(tokens: Tokens): (bytes: Uint8Array) => void {
  const { scratch } = tokens
  let reading: 'string' | 'word' | undefined
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
  const wordEnd = (bytes: Uint8Array, at: number): number => {
    while (at < bytes.length && wordByte[bytes[at]!] === 1) at++
    return at
  }
  return bytes => {
    for (let at = 0; at < bytes.length;) {
      if (reading === undefined) {
        const byte = bytes[at]!
        if (wordByte[byte] === 1) {
          reading = 'word'
          scratch.begin(wordMax)
          continue
        }
        at++
        if (byte === quote) {
          reading = 'string'
          scratch.begin(tokens.room())
        } else tokens.mark(byte)
        continue
      }
      const end = reading === 'string' ? stringEnd(bytes, at) : wordEnd(bytes, at)
      scratch.add(bytes, at, end)
      at = end
      if (at === bytes.length) return
      if (reading === 'string') {
        at++
        tokens.endString()
      } else tokens.endWord(scratch.word())
      reading = undefined
    }
  }
}
