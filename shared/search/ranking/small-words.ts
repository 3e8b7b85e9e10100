import type { Steps } from '#shared/core/event-loop.ts'
import type { ParsedQuery } from '#shared/search/query/parse-query.ts'
import type { SearchRange } from '#shared/search/ranking/ranges.ts'
import {
  uniqueTexts,
  type RankingQuery,
  type RowLimits,
  type ScoredRow,
} from '#shared/search/ranking/scores.ts'
import { fuseSignals, noSignals } from '#shared/search/ranking/signals.ts'
import { isFunctionTerm } from '#shared/search/words/stop-words.ts'
import { foldText, unspacedScript } from '#shared/search/words/writing-systems.ts'

/** Texts read in one step, some microseconds each. */
const stepRows = 128

/** Characters of a query that are looked for. */
const phraseLengthMax = 200

/** How well a text fits: the query as it is written, in other letters, or its words apart. */
const fits = { asWritten: 1, phrase: 0.75, words: 0.5 }

/**
 * Whether a query has function words, single characters or signs alone: "The Who", "It", "不". No index of words has these,
 * since most texts have them.
 */
export const asksSmallWords = ({ terms, times }: ParsedQuery): boolean =>
  times.length === 0 &&
  terms.every(({ term }) => isFunctionTerm(term) || Array.from(term).length === 1)

/** A pattern of a phrase, or undefined for none: whole words, where its script has spaces between them. */
function phrasePattern(phrase: string): string | undefined {
  const words = phrase.trim().split(/\s+/)
  if (words[0] === '') return undefined
  const isWord = (end: string): boolean => /^[\p{L}\p{N}]/u.test(end) && !unspacedScript.test(end)
  const characters = Array.from(words.join(' '))
  const start = isWord(characters[0]!) ? String.raw`(?<![\p{L}\p{N}])` : ''
  const end = isWord(characters.at(-1)!) ? String.raw`(?![\p{L}\p{N}])` : ''
  return start + words.map(RegExp.escape).join(String.raw`\s+`) + end
}

/**
 * Ranks the rows that have the words of a query of small words, before the others that match it; best first.
 *
 * @param matches best first
 */
export function* smallWordsFirst(
  ranges: readonly SearchRange[],
  { text, weights }: RankingQuery,
  matches: readonly ScoredRow[],
  { onMatching }: Pick<RowLimits, 'onMatching'>,
): Steps<ScoredRow[]> {
  const rows: ScoredRow[] = []
  for (const range of ranges) {
    const fitByRow = yield* rowsWithSmallWords(range, text)
    onMatching?.(range, fitByRow.keys())
    for (const [row, words] of fitByRow) {
      const signals = { ...noSignals, words }
      const relevance = fuseSignals(signals, weights)
      rows.push({ range, row, at: range.tierIndex.timeAt(row), signals, relevance, ownShare: 1 })
    }
  }
  const all = [...rows, ...matches].sort((a, b) => b.relevance - a.relevance || b.at - a.at)
  return uniqueTexts(all, ranges)
}

/**
 * Finds the rows of a range whose texts have the words of a query of small words, by reading them all; the newest row of
 * each text, with how well it fits, 0 to 1. In short steps.
 */
function* rowsWithSmallWords(
  { tierIndex, first, end, allows, newestOf }: SearchRange,
  text: string,
): Steps<Map<number, number>> {
  const fitByRow = new Map<number, number>()
  const query = text.slice(0, phraseLengthMax)
  const pattern = phrasePattern(query)
  if (pattern === undefined) return fitByRow
  const asWritten = new RegExp(pattern, 'u')
  const folded = foldText(query)
  const phrase = new RegExp(phrasePattern(folded) ?? pattern, 'u')
  const words = folded.split(/\s+/).map(word => new RegExp(phrasePattern(word) ?? word, 'u'))
  const fitOf = (rowText: string): number => {
    if (asWritten.test(rowText)) return fits.asWritten
    const foldedText = foldText(rowText)
    if (phrase.test(foldedText)) return fits.phrase
    return words.length > 1 && words.every(word => word.test(foldedText)) ? fits.words : 0
  }
  for (let row = first; row < end; row++) {
    if (row % stepRows === stepRows - 1) yield
    if (!allows(row) || newestOf(row) !== row) continue
    const fit = fitOf(tierIndex.text(row))
    if (fit > 0) fitByRow.set(row, fit)
  }
  return fitByRow
}
