import { isAsking, isRequest } from '#shared/search/query/sentence-kinds.ts'
import type { ParsedQuery } from '#shared/search/query/parse-query.ts'
import { termsOf } from '#shared/search/words/index-terms.ts'
import { isCommonWord } from '#shared/search/words/term-weights.ts'
import { tuned } from '#shared/search/tuned.ts'

/** A word with a capital, in one script: that of "Kestrelについて" has seven letters. */
const capitalWord = String.raw`(?:(?=\p{sc=Latin})\p{Lu}[\p{sc=Latin}\p{M}\p{N}'’-]*|(?!\p{sc=Latin})\p{Lu}[\p{L}\p{M}'’-]*)`
const capitalRuns = new RegExp(`(?<![\\p{L}\\p{N}])${capitalWord}(?: ${capitalWord}){0,7}`, 'gu')
const capitalRunsInOtherScripts = new RegExp(`${capitalWord}(?: ${capitalWord}){0,7}`, 'gu')
/** Letters of scripts without capitals; a Latin word among them is a name. */
const caselessLetters =
  /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}\p{sc=Arabic}\p{sc=Devanagari}\p{sc=Thai}\p{sc=Hebrew}]/u
const { capitalisedShareMax, otherWeightMax } = tuned.terms
/** Words of a name; a longer run of capitals is a title. */
const nameWordsMax = 3
const textLengthMax = 400

/** A name, as the terms that a row about it has. */
export type NamedSubject = readonly string[]

/**
 * Returns the names in a sentence: runs of capitalised words that do not begin it. Where most nouns have capitals only the
 * last run counts: what a request is about comes last.
 */
export function namedSubjects(sentence: string): NamedSubject[] {
  const text = sentence.slice(0, textLengthMax)
  const isCaseless = caselessLetters.test(text)
  const runs = [...text.matchAll(isCaseless ? capitalRunsInOtherScripts : capitalRuns)].flatMap(
    ({ 0: run, index }) => {
      const words = run.split(' ')
      const beginsSentence = !isCaseless && !/[\p{L}\p{N}]/u.test(text.slice(0, index))
      const name = beginsSentence && run.length < text.trim().length - 1 ? words.slice(1) : words
      // "Explain Kestrel" and "Project Aurora" are one run: the last word is a name in both.
      if (beginsSentence && name.length > 1 && name.length === words.length) name.shift()
      return name.length > 0 && name.length <= nameWordsMax ? [name] : []
    },
  )
  const names = runs
    .map(name => name.flatMap(word => termsOf(word)).filter(term => !term.endsWith('*')))
    .filter(terms => terms.some(term => !isCommonWord(term)))
  const capitals = runs.reduce((sum, name) => sum + name.length, 0)
  const isCapitalised = capitals > 1 && capitals > text.split(/\s+/).length * capitalisedShareMax
  return isCapitalised && !isCaseless ? names.slice(-1) : names
}

/**
 * Whether a sentence asks for all that is known of its names: it gives a task ("Summarize Project Aurora"), or asks with
 * words that say nothing else ("What is …?").
 */
export function asksOfNames(
  sentence: string,
  names: readonly NamedSubject[],
  { terms }: Pick<ParsedQuery, 'terms'>,
): boolean {
  if (names.length === 0) return false
  if (isRequest(sentence) || !isAsking(sentence)) return true
  const ofNames = new Set(names.flat())
  return terms.every(({ term, weight }) => weight < otherWeightMax || ofNames.has(term))
}

const innerCapitals = /(?<=[\p{L}\d,;–-]\s)\p{Lu}[\p{L}'’]+/gu

/** Returns the words of a text that are capitalised without beginning a sentence; none of a title or of German. */
export function innerNames(text: string): string[] {
  const capitals = text.match(innerCapitals) ?? []
  const isCapitalised = capitals.length > text.split(/\s+/).length * capitalisedShareMax
  return capitals.length > 1 && isCapitalised ? [] : capitals
}
