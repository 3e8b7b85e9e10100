/** Words that say nothing about what a text is about. */
const emptyWords = new Set(
  (
    'the and for are was has had its not but with that this from will have been they them their there ' +
    'now our you your his her she who what when where which also than then too very can may must shall ' +
    'fact is in on at to of by as an it or be we he'
  ).split(' '),
)

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
  return new Set(words.filter(word => !emptyWords.has(word)).map(word => word.slice(0, stemLength)))
}

/** Whether two texts may be about the same thing, as far as their words tell. */
export const shareWord = (one: TextWords, other: TextWords): boolean =>
  one === undefined || other === undefined || [...one].some(word => other.has(word))

/** The words that two texts share; none where words cannot be told apart. */
export const sharedWords = (one: TextWords, other: TextWords): string[] =>
  one === undefined || other === undefined ? [] : [...one].filter(word => other.has(word))
