import { normalizeForHash, hashText } from '#shared/search/columns/text-hash.ts'

/** Texts that a request contains: recalled for it, they would be in the prompt twice. */
export type TextExclusion = {
  readonly size: number
  /** @param textOf returns the text that `hash` is of; called only when the hash does not decide */
  has(hash: number, textOf: () => string): boolean
}

/** Only the newest characters of a longer conversation are compared: about 2 ms. */
export const comparedCharactersMax = 1_000_000

/** A longer text may have more tokens than one memory holds, and so be stored in chunks. */
const unsplitCharactersMax = 512

/**
 * Excludes texts that a conversation contains: short ones by their hashes, long ones as a whole and each of
 * their chunks.
 *
 * @param texts oldest first
 */
export function excludeTexts(texts: readonly string[]): TextExclusion {
  const hashes = new Set<number>()
  const longTexts: string[] = []
  let characters = 0
  for (const text of texts.toReversed()) {
    characters += text.length
    if (characters > comparedCharactersMax) break
    if (text.length > unsplitCharactersMax) longTexts.push(text)
    else hashes.add(hashText(text))
  }
  let matcher: ChunkMatcher | undefined
  const isChunkOfLongText = (text: string): boolean =>
    (matcher ??= new ChunkMatcher(longTexts.map(normalizeForHash))).has(text)
  return {
    size: hashes.size + longTexts.length,
    has: (hash, textOf) =>
      hashes.has(hash) || (longTexts.length > 0 && isChunkOfLongText(normalizeForHash(textOf()))),
  }
}

/** A shorter text that occurs inside a long one is not excluded: on its own it may mean something else. */
const chunkCharactersMin = 256
const lastChunkCharactersMin = 32

/** Windows are so far apart that every chunk contains one, less than a step after its beginning. */
const windowLength = 32
const windowStep = chunkCharactersMin - windowLength

/** Bounds the work for texts that repeat themselves, whose windows are all alike. */
const comparisonsMax = 16

type Window = { text: string; at: number }

/**
 * Finds whether a text is a chunk of one of many long texts, by rolling hashes (Rabin-Karp). For 120 candidates
 * and a conversation of 400 KB it takes 3 to 24 ms of CPU time; `String.includes` takes 12 to 71 ms, and 75 to
 * 260 ms when the texts repeat themselves.
 */
class ChunkMatcher {
  readonly #windowsByHash = new Map<number, Window[]>()
  /** Whether any window has a hash with these low 16 bits: rejects most hashes without the map. */
  readonly #hasLowBits = new Uint8Array(1 << 16)
  readonly #textsByEnding = new Map<string, string[]>()

  constructor(texts: readonly string[]) {
    for (const text of texts) {
      const ending = text.slice(-lastChunkCharactersMin)
      this.#textsByEnding.set(ending, [...(this.#textsByEnding.get(ending) ?? []), text])
      for (let at = 0; at + windowLength <= text.length; at += windowStep) {
        this.#addWindow(rollingHashAt(text, at), { text, at })
      }
    }
  }

  has(chunk: string): boolean {
    const sameEnding = this.#textsByEnding.get(chunk.slice(-lastChunkCharactersMin))
    if (sameEnding?.some(text => text.endsWith(chunk))) return true
    if (chunk.length < chunkCharactersMin) return false
    let hash = rollingHashAt(chunk, 0)
    let comparisons = 0
    for (let start = 0; start < windowStep && comparisons < comparisonsMax; start++) {
      const windows = this.#windowsWith(hash)
      if (windows.some(({ text, at }) => text.startsWith(chunk, at - start))) return true
      comparisons += windows.length
      hash = advanceRollingHash(hash, chunk, start)
    }
    return false
  }

  #addWindow(hash: number, window: Window): void {
    const windows = this.#windowsByHash.get(hash) ?? []
    if (windows.length < comparisonsMax) windows.push(window)
    this.#windowsByHash.set(hash, windows)
    this.#hasLowBits[hash & 0xffff] = 1
  }

  #windowsWith(hash: number): readonly Window[] {
    return this.#hasLowBits[hash & 0xffff] ? (this.#windowsByHash.get(hash) ?? []) : []
  }
}

const hashBase = 0x01000193

/** `hashBase` to the power of `windowLength - 1`: the factor of the first character of a window. */
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
