import { foreignStopWords, stopWords } from '#shared/search/words/stop-words.ts'

/** Scripts that put no space between words. */
const withoutSpaces =
  /\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Thai}|\p{Script=Lao}|\p{Script=Khmer}|\p{Script=Myanmar}/u

/** Letters of a word that tell it from others, whatever its ending. */
const stemLength = 5

/** What two texts are compared by; undefined where words cannot be told apart. */
type TextWords = ReadonlySet<string> | undefined

export function wordsOf(text: string): TextWords {
  if (withoutSpaces.test(text)) return undefined
  const words =
    text
      .normalize('NFKC')
      .toLowerCase()
      .match(/[\p{L}\p{M}\p{N}]+/gu) ?? []
  const telling = words.filter(word => !stopWords.has(word) && !foreignStopWords.has(word))
  return new Set(telling.map(word => word.slice(0, stemLength)))
}

/** Whether two texts may be about the same thing, as far as their words tell. */
export const shareWord = (one: TextWords, other: TextWords): boolean =>
  one === undefined || other === undefined || [...one].some(word => other.has(word))

/** The words that two texts share; none where words cannot be told apart. */
export const sharedWords = (one: TextWords, other: TextWords): string[] =>
  one === undefined || other === undefined ? [] : [...one].filter(word => other.has(word))
