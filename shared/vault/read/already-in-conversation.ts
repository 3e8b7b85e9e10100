import { normalizeForHash, hashText } from '#shared/search/columns/text-hash.ts'

/** Texts that a request holds itself: recalled for it, they would only be told twice. */
export type TextExclusion = {
  readonly size: number
  /** @param textOf tells the text of which `hash` is the hash, when it is needed. */
  has(hash: number, textOf: () => string): boolean
}

/** Of a longer conversation the newest characters are looked at: about 2 ms. */
const charactersMax = 1_000_000

/** A longer text may have more tokens than one memory holds, and so be stored in pieces. */
const wholeMax = 512

/** Short texts are known by their hashes, of long ones each piece. @param texts oldest first */
export function excludeTexts(texts: readonly string[]): TextExclusion {
  const hashes = new Set<number>()
  const longTexts: string[] = []
  let characters = 0
  for (let index = texts.length - 1; index >= 0; index--) {
    const text = texts[index]!
    characters += text.length
    if (characters > charactersMax) break
    if (text.length > wholeMax) longTexts.push(text)
    else hashes.add(hashText(text))
  }
  let chunkMatcher: ChunkMatcher | undefined
  const isChunkOfLongText = (text: string): boolean =>
    (chunkMatcher ??= createChunkMatcher(longTexts.map(normalizeForHash))).has(text)
  return {
    size: hashes.size + longTexts.length,
    has: (hash, textOf) =>
      hashes.has(hash) || (longTexts.length > 0 && isChunkOfLongText(normalizeForHash(textOf()))),
  }
}

type ChunkMatcher = { has(text: string): boolean }

/**
 * What is shorter, and stands somewhere in a long text, says something else when it stands alone. Of the
 * pieces of a text mostly the last one is short.
 */
const chunkCharactersMin = 256
const lastChunkCharactersMin = 32
/** Windows of a text, so far apart that every piece begins less than a step before one that it holds. */
const windowLength = 32
const windowStep = chunkCharactersMin - windowLength
/** Texts that say the same again and again look alike everywhere. */
const comparisonsMax = 16

/** Searching each text for each piece takes a hundred times as long where there are many. */
function createChunkMatcher(texts: readonly string[]): ChunkMatcher {
  const windows = new Map<number, { text: string; at: number }[]>()
  /** Most hashes are none of these: by their low bits this is told at once. */
  const isAny = new Uint8Array(1 << 16)
  const textsByEnding = new Map<string, string[]>()
  for (const text of texts) {
    const end = text.slice(-lastChunkCharactersMin)
    textsByEnding.set(end, [...(textsByEnding.get(end) ?? []), text])
    for (let at = 0; at + windowLength <= text.length; at += windowStep) {
      const hash = rollingHashAt(text, at)
      const places = windows.get(hash) ?? []
      if (places.length < comparisonsMax) places.push({ text, at })
      windows.set(hash, places)
      isAny[hash & 0xffff] = 1
    }
  }
  return {
    has(chunk) {
      if (
        textsByEnding.get(chunk.slice(-lastChunkCharactersMin))?.some(text => text.endsWith(chunk))
      )
        return true
      if (chunk.length < chunkCharactersMin) return false
      let hash = rollingHashAt(chunk, 0)
      for (
        let start = 0, comparisons = 0;
        start < windowStep && comparisons < comparisonsMax;
        start++
      ) {
        const places = isAny[hash & 0xffff] ? (windows.get(hash) ?? []) : []
        if (places.some(({ text, at }) => text.startsWith(chunk, at - start))) return true
        comparisons += places.length
        hash = advanceRollingHash(hash, chunk, start)
      }
      return false
    },
  }
}

const hashBase = 0x01000193
const leadingHashFactor = Array.from({ length: windowLength - 1 }).reduce<number>(
  power => Math.imul(power, hashBase),
  1,
)

function rollingHashAt(text: string, start: number): number {
  let hash = 0
  for (let at = start; at < start + windowLength; at++) {
    hash = (Math.imul(hash, hashBase) + text.charCodeAt(at)) | 0
  }
  return hash
}

/** The hash of the window one character further on. */
const advanceRollingHash = (hash: number, text: string, start: number): number =>
  (Math.imul(hash - Math.imul(text.charCodeAt(start), leadingHashFactor), hashBase) +
    text.charCodeAt(start + windowLength)) |
  0
