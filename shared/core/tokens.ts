import { createRequire } from 'node:module'
import type * as Encoding from 'gpt-tokenizer/encoding/o200k_base'
import { runAtOnce, runInSlices, type Steps } from '#shared/core/event-loop.ts'

/** Characters that are counted at once: up to 3 ms of ordinary text in any script. */
const sliceLength = 2_000

/**
 * The encoder takes quadratic time for a run of letters, of symbols or of white space: one that is longer is counted
 * in pieces of this length (2,000 Thai letters: 20 ms at once, 7 ms in pieces).
 */
const runLength = 200

/** The characters of a run; each is looked at from its beginning alone, which takes linear time. */
const longRun = (...kinds: string[]): RegExp =>
  new RegExp(kinds.map(kind => `(?<!${kind})${kind}{${runLength}}`).join('|'), 'u')

/** What has no long run by this quick test has none. */
const mayHaveLongRun = longRun('\\S', '\\s', '[\\r\\n/]')
const hasLongRun = longRun('[\\p{L}\\p{M}]', '[^\\s\\p{L}\\p{N}]', '\\s', '[\\r\\n/]')

const encodeOptions = { disallowedSpecial: new Set<string>() }

/** Encoded words that the encoder keeps; each may keep all of the piece that it stood in. */
const keptWordsMax = 5_000

let encoding: typeof Encoding | undefined

/** The tables take 57 MB and 0.2 s: a process that counts no tokens never loads them. */
function loadEncoding(): typeof Encoding {
  if (encoding) return encoding
  encoding = createRequire(import.meta.url)('gpt-tokenizer/encoding/o200k_base') as typeof Encoding
  encoding.setMergeCacheSize(keptWordsMax)
  return encoding
}

/** Counts a copy: a word that the encoder keeps would keep the whole text that this one was cut out of. */
const countPiece = (text: string): number =>
  loadEncoding().countTokens(Buffer.from(text, 'utf16le').toString('utf16le'), encodeOptions)

/**
 * Length of a text in o200k_base tokens. Texts beyond 2,000 characters are counted in slices (+0.2 %), runs of more
 * than 200 letters, symbols or spaces in pieces (at most +1 % in ten scripts).
 */
export const countTokens = (text: string): number =>
  text.length <= runLength ? countPiece(text) : runAtOnce(countTokensInSteps(text))

/** As `countTokens`, and lets the event loop run in between: for texts of clients. */
export const countTokensInSlices = async (text: string): Promise<number> =>
  text.length <= runLength ? countPiece(text) : runInSlices(countTokensInSteps(text))

/**
 * As `countTokens`, in steps of some milliseconds.
 *
 * @param max where counting ends: of a text with more tokens some number above it is returned
 */
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

/** Debt is measured in importance: 150 stands for 50,000 raw tokens. */
export const importanceFromTokens = (tokens: number): number => (tokens * 150) / 50_000
