import { languages, wordsOf } from '#shared/search/languages/languages.ts'
import { foldText, latinRoot, nonLatinTerms } from '#shared/search/words/writing-systems.ts'

const ofLanguage = (code: string): string[] =>
  (languages.get(code)?.stopWords ?? []).flatMap(line => line.split(' '))

/** English function words; not indexed. */
export const stopWords: ReadonlySet<string> = new Set(ofLanguage('en'))

const ambiguousStopWords = new Set(wordsOf('ambiguousStopWords'))

/** Stop words of English only: signs of an English text. */
export const englishOnlyStopWords: ReadonlySet<string> = new Set(
  [...stopWords].filter(word => !ambiguousStopWords.has(word)),
)

const otherStopWords = [...languages.keys()].filter(code => code !== 'en').flatMap(ofLanguage)
const isLatin = (word: string): boolean => /\p{sc=Latn}/u.test(word)
const homographs = new Set(wordsOf('homographs'))

/**
 * Function words of other languages in Latin letters, with and without accents. None is a common English word, so a
 * single one marks a text without English function words as foreign.
 */
export const foreignStopWords: ReadonlySet<string> = new Set(
  otherStopWords
    .filter(isLatin)
    .flatMap(word => [word, word.normalize('NFD').replace(/[\u0300-\u036f]/g, '')])
    .filter(word => word.length > 1 && !stopWords.has(word) && !homographs.has(word)),
)

/** Terms of words of other languages that say nothing of the subject: "meine", "où", "меня". */
const functionTerms: ReadonlySet<string> = new Set(
  [...foreignStopWords, ...otherStopWords.filter(word => !isLatin(word))]
    .map(foldText)
    .flatMap(word => [word, ...(isLatin(word) ? latinRoot(word) : (nonLatinTerms(word) ?? []))]),
)

/** Words of such characters alone, in scripts without spaces. */
const functionCharacters = new RegExp(
  `^[${[...languages.values()].map(of => of.functionCharacters ?? '').join('')}]+$`,
  'u',
)

/** "à" and "é" without their accents. */
const accentedWords: ReadonlySet<string> = new Set(['a', 'e'])

/** Weight of such a term in a question, relative to others; in texts it counts as others do. */
export const functionTermWeight = 0.1

/** Whether a term is a function word of another language than English, whose function words are no terms. */
export const isFunctionTerm = (term: string): boolean =>
  functionTerms.has(term) || functionCharacters.test(term) || accentedWords.has(term)
