import { hashedText, textHashOf } from '#shared/search/columns/hash.ts'

/** Texts that a request holds itself: recalled for it, they would only be told twice. */
export type Repeated = {
  readonly size: number
  /** @param textOf tells the text of which `hash` is the hash, when it is needed. */
  has(hash: number, textOf: () => string): boolean
}

/** Of a longer conversation the newest characters are looked at: about 2 ms. */
const charactersMax = 1_000_000

/** A longer text may have more tokens than one memory holds, and so be stored in pieces. */
const wholeMax = 512

/** Short texts are known by their hashes, of long ones each piece. @param texts oldest first */
export function repeatedOf(texts: readonly string[]): Repeated {
  const hashes = new Set<number>()
  const long: string[] = []
  let characters = 0
  for (let index = texts.length - 1; index >= 0; index--) {
    const text = texts[index]!
    characters += text.length
    if (characters > charactersMax) break
    if (text.length > wholeMax) long.push(text)
    else hashes.add(textHashOf(text))
  }
  let pieces: Pieces | undefined
  const isPiece = (text: string): boolean => (pieces ??= piecesIn(long.map(hashedText))).has(text)
  return {
    size: hashes.size + long.length,
    has: (hash, textOf) => hashes.has(hash) || (long.length > 0 && isPiece(hashedText(textOf()))),
  }
}

type Pieces = { has(text: string): boolean }

/**
 * What is shorter, and stands somewhere in a long text, says something else when it stands alone. Of the
 * pieces of a text mostly the last one is short.
 */
const pieceMin = 256
const lastPieceMin = 32
/** Windows of a text, so far apart that every piece begins less than a step before one that it holds. */
const windowLength = 32
const windowStep = pieceMin - windowLength
/** Texts that say the same again and again look alike everywhere. */
const looksMax = 16

/** Searching each text for each piece takes a hundred times as long where there are many. */
function piecesIn(texts: readonly string[]): Pieces {
  const windows = new Map<number, { text: string; at: number }[]>()
  /** Most hashes are none of these: by their low bits this is told at once. */
  const isAny = new Uint8Array(1 << 16)
  const ends = new Map<string, string[]>()
  for (const text of texts) {
    const end = text.slice(-lastPieceMin)
    ends.set(end, [...(ends.get(end) ?? []), text])
    for (let at = 0; at + windowLength <= text.length; at += windowStep) {
      const hash = windowHash(text, at)
      const places = windows.get(hash) ?? []
      if (places.length < looksMax) places.push({ text, at })
      windows.set(hash, places)
      isAny[hash & 0xffff] = 1
    }
  }
  return {
    has(piece) {
      if (ends.get(piece.slice(-lastPieceMin))?.some(text => text.endsWith(piece))) return true
      if (piece.length < pieceMin) return false
      let hash = windowHash(piece, 0)
      for (let start = 0, looks = 0; start < windowStep && looks < looksMax; start++) {
        const places = isAny[hash & 0xffff] ? (windows.get(hash) ?? []) : []
        if (places.some(({ text, at }) => text.startsWith(piece, at - start))) return true
        looks += places.length
        hash = nextHash(hash, piece, start)
      }
      return false
    },
  }
}

const base = 0x01000193
const highest = Array.from({ length: windowLength - 1 }).reduce<number>(
  power => Math.imul(power, base),
  1,
)

function windowHash(text: string, start: number): number {
  let hash = 0
  for (let at = start; at < start + windowLength; at++) {
    hash = (Math.imul(hash, base) + text.charCodeAt(at)) | 0
  }
  return hash
}

/** The hash of the window one character further on. */
const nextHash = (hash: number, text: string, start: number): number =>
  (Math.imul(hash - Math.imul(text.charCodeAt(start), highest), base) +
    text.charCodeAt(start + windowLength)) |
  0
