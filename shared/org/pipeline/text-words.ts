import { foreignStopWords, stopWords } from '#shared/search/words/stop-words.ts'

/** The words of a text in lower case. */
export const wordsIn = (text: string): string[] =>
  text
    .normalize('NFKC')
    .toLowerCase()
    .match(/[\p{L}\p{M}\p{N}]+/gu) ?? []

/** Scripts that put no space between words. */
const withoutSpaces =
  /\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Thai}|\p{Script=Lao}|\p{Script=Khmer}|\p{Script=Myanmar}/u

/** Letters of a word that tell it from others, whatever its ending. */
const stemLength = 5

/** The stems that two texts are compared by; undefined where words cannot be told apart. */
type TextStems = ReadonlySet<string> | undefined

export function stemsOf(text: string): TextStems {
  if (withoutSpaces.test(text)) return undefined
  const words = wordsIn(text).filter(word => !stopWords.has(word) && !foreignStopWords.has(word))
  return new Set(words.map(word => word.slice(0, stemLength)))
}

/** Whether two texts share a stem, or cannot be compared. */
export const shareStem = (one: TextStems, other: TextStems): boolean =>
  one === undefined || other === undefined || sharedStems(one, other).length > 0

/** The stems that two texts share; none where they cannot be compared. */
export const sharedStems = (one: TextStems, other: TextStems): string[] =>
  one === undefined || other === undefined ? [] : [...one].filter(word => other.has(word))
