import {
  foreignStopWords,
  functionCharacters,
  otherStopWords,
} from '#shared/search/words/stop-words.ts'
import { foldText, latinRoot, nonLatinTerms } from '#shared/search/words/writing-systems.ts'

/** Terms of words of other languages that say nothing of the subject: "meine", "où", "меня". */
const functionTerms: ReadonlySet<string> = new Set(
  [...foreignStopWords, ...otherStopWords].flatMap(word => [
    foldText(word),
    ...(/\p{sc=Latn}/u.test(word)
      ? latinRoot(foldText(word))
      : (nonLatinTerms(foldText(word)) ?? [])),
  ]),
)

/** "à" and "é" without their accents. */
const accentedWords: ReadonlySet<string> = new Set(['a', 'e'])

/** What such a term counts in a question, relative to others; in texts they count as others do. */
export const functionTermWeight = 0.1

/** Whether a term is a function word of another language than English, whose function words are no terms. */
export const isFunctionTerm = (term: string): boolean =>
  functionTerms.has(term) || functionCharacters.test(term) || accentedWords.has(term)
