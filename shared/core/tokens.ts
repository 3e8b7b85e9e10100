import { createRequire } from 'node:module'
import type * as Encoding from 'gpt-tokenizer/encoding/o200k_base'
import { runAtOnce, runInSlices, type Steps } from '#shared/core/event-loop.ts'
import { hash } from 'node:crypto'
import { createLruCache } from '#shared/core/lru-cache.ts'

/** Characters counted at once: up to 3 ms of ordinary text in any script. */
const sliceLength = 2_000

/**
 * Runs of letters, symbols or white space are counted in pieces of this length, since the encoder takes quadratic time
 * for them (2,000 Thai letters: 20 ms at once, 7 ms in pieces).
 */
const runLength = 200

/** Each run is read from its beginning alone, which takes linear time. */
const longRun = (...kinds: string[]): RegExp =>
  new RegExp(kinds.map(kind => `(?<!${kind})${kind}{${runLength}}`).join('|'), 'u')

/** A quick test without false negatives. */
const mayHaveLongRun = longRun('\\S', '\\s', '[\\r\\n/]')
const hasLongRun = longRun('[\\p{L}\\p{M}]', '[^\\s\\p{L}\\p{N}]', '\\s', '[\\r\\n/]')

const encodeOptions = { disallowedSpecial: new Set<string>() }

/** Words that the encoder caches; each may keep its whole piece in memory. */
const keptWordsMax = 5_000

let encoding: typeof Encoding | undefined

/** The tables take 57 MB and 0.2 s: a process that counts no tokens never loads them. */
function loadEncoding(): typeof Encoding {
  if (encoding) return encoding
  encoding = createRequire(import.meta.url)('gpt-tokenizer/encoding/o200k_base') as typeof Encoding
  encoding.setMergeCacheSize(keptWordsMax)
  return encoding
}

/** Counts a copy: a word that the encoder keeps would keep the whole text it was cut from. */
const countPiece = (text: string): number =>
  loadEncoding().countTokens(Buffer.from(text, 'utf16le').toString('utf16le'), encodeOptions)

/**
 * Length of a text in o200k_base tokens. Texts beyond 2,000 characters are counted in slices (+0.2 %), runs of more
 * than 200 letters, symbols or spaces in pieces (at most +1 % in ten scripts).
 */
export const countTokens = (text: string): number =>
  text.length <= runLength ? countPiece(text) : runAtOnce(countTokensInSteps(text))

/** As `countTokens`, in slices of the event loop. */
export const countTokensInSlices = async (text: string): Promise<number> =>
  text.length <= runLength ? countPiece(text) : runInSlices(countTokensInSteps(text))

/** As `countTokens`, in steps. @param max where counting ends: some number above it is returned for longer texts */
export function* countTokensInSteps(text: string, max = Infinity): Steps<number> {
  let sum = 0
  for (const slice of cutText(text, sliceLength)) {
    const isCut = mayHaveLongRun.test(slice) && hasLongRun.test(slice)
    const pieces = isCut ? cutText(slice, runLength) : [slice]
    for (const piece of pieces) {
      sum += countPiece(piece)
      if (sum > max) return sum
      yield
    }
  }
  return sum
}

/** Pieces of a text; each ends before a space where one is near, and never inside a surrogate pair. */
function* cutText(text: string, length: number): Generator<string> {
  for (let start = 0; start < text.length;) {
    const end = pieceEnd(text, start, length)
    yield text.slice(start, end)
    start = end
  }
}

function pieceEnd(text: string, start: number, length: number): number {
  const end = start + length
  if (end >= text.length) return text.length
  const space = text.lastIndexOf(' ', end)
  if (space > start + length / 2) return space
  return (text.charCodeAt(end - 1) & 0xfc00) === 0xd800 ? end - 1 : end
}

/** 50,000 raw tokens are a debt of 150. */
export const importanceFromTokens = (tokens: number): number => (tokens * 150) / 50_000

/** By the hash of the line, since deleted texts must not stay in memory. About 100 bytes each. */
const counts = createLruCache<number>(20_000)

/** A line break that no token crosses: before white space or a slash one may. */
const lineBreak = /(?<=\n)(?=[^\s/])/

/** As `countTokens`, with counts cached by line: recall blocks repeat lines, and one of 30 takes a millisecond. */
export const countTokensByLine = (text: string): number =>
  text.split(lineBreak).reduce((sum, line) => sum + countLine(line), 0)

function countLine(line: string): number {
  const name = hash('sha1', line, 'base64')
  const known = counts.get(name)
  if (known !== undefined) return known
  const count = countTokens(line)
  counts.set(name, count)
  return count
}
