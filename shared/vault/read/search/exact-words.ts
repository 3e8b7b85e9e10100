import { stopWords } from '#shared/search/words/stop-words.ts'

/** A word of a question, with a pattern that finds it in texts, without regard to case. */
export type ExactWord = {
  /** In lower case. */
  word: string
  pattern: string
  /** A name, number or identifier, by its form. */
  isName: boolean
}

/** Words of one question, and characters of one word. */
const wordsMax = 16
const wordLengthMax = 64

/** A longer text is a conversation: its end is what it asks. */
const textLengthMax = 2_000

const edges = /^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu

/**
 * The words of a question that can be looked for as they are: identifiers (whole) and numbers, then names, then
 * long words.
 */
export function exactWords(text: string): ExactWord[] {
  const words = new Map<string, { word: string; weight: number }>()
  for (const run of text.slice(-textLengthMax).split(/\s+/)) {
    const word = run.replace(edges, '').slice(0, wordLengthMax)
    const key = word.toLowerCase()
    if (word.length < 2 || stopWords.has(key)) continue
    const weight = wordWeight(word)
    if (weight > (words.get(key)?.weight ?? 0)) words.set(key, { word: key, weight })
  }
  const phrase = text.trim().toLowerCase()
  // "The Who": no word of it can be looked for by itself.
  if (words.size === 0 && phrase !== '' && phrase.length <= wordLengthMax)
    return [{ word: phrase, pattern: phrasePattern(phrase), isName: true }]
  return [...words.values()]
    .toSorted((a, b) => b.weight - a.weight)
    .slice(0, wordsMax)
    .map(({ word, weight }) => ({ word, pattern: patternOf(word), isName: weight >= nameWeight }))
}

/** A name or number may be in many rows of which the candidates have the wrong ones; other words need one. */
const rowsOfName = 5

/** The words of a question that too few of its candidates have, so that the rest of the vault is asked. */
export function missingWords(text: string, candidates: readonly { text: string }[]): ExactWord[] {
  const lower = candidates.map(row => row.text.toLowerCase())
  return exactWords(text).filter(({ word, isName }) => {
    let rows = 0
    for (const row of lower)
      if (row.includes(word) && ++rows >= (isName ? rowsOfName : 1)) return false
    return true
  })
}

/** More than the length of any word. */
const nameWeight = 100

/** By kind, then by length. */
function wordWeight(word: string): number {
  const isIdentifier = /\p{N}/u.test(word) && word.length > 2
  const isName = /^\p{Lu}/u.test(word)
  return (isIdentifier ? 2 * nameWeight : isName ? nameWeight : 0) + word.length
}

/**
 * Literal text only, so the search is linear. Words of letters match where a word begins; other scripts, which
 * have no spaces, anywhere.
 */
function patternOf(word: string): string {
  const literal = word.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`)
  return /^[a-z0-9]/.test(word) ? String.raw`\b${literal}` : literal
}

/** Whole words: "it" is in most texts as a part of others. */
const phrasePattern = (phrase: string): string =>
  patternOf(phrase).replaceAll(/\s+/g, String.raw`\s+`) +
  (/[a-z0-9]$/.test(phrase) ? String.raw`\b` : '')

/**
 * The ids of the rows with the rarest words, best first: a word weighs by how few of the rows have it.
 *
 * @param rows all have at least one of the words
 */
export function rowsByRareWords(
  rows: readonly { _id: string; text: string }[],
  words: readonly ExactWord[],
  count: number,
): string[] {
  const found = rows.map(({ _id, text }) => {
    const lower = text.toLowerCase()
    return { id: _id, words: words.filter(({ word }) => lower.includes(word)) }
  })
  const frequencies = new Map<ExactWord, number>()
  for (const row of found) {
    for (const word of row.words) frequencies.set(word, (frequencies.get(word) ?? 0) + 1)
  }
  const weightOf = (word: ExactWord): number => Math.log(1 + rows.length / frequencies.get(word)!)
  return found
    .map(row => ({ id: row.id, weight: row.words.reduce((sum, one) => sum + weightOf(one), 0) }))
    .toSorted((a, b) => b.weight - a.weight)
    .slice(0, count)
    .map(({ id }) => id)
}

/** Letters of labels, which are folded, with those that they are folded from. */
const foldedLetters: Record<string, string> = {
  a: '[aàáâãäå]',
  c: '[cç]',
  e: '[eèéêë]',
  i: '[iìíîï]',
  n: '[nñ]',
  o: '[oòóôõö]',
  u: '[uùúûü]',
  е: '[её]',
  и: '[ий]',
}

/**
 * Finds notes of a value behind one of some labels, "Name: Ada", "- prénom : Ada": one pattern for all.
 *
 * @param labels folded
 */
export function labelledNotes(labels: Iterable<string>): ExactWord {
  const words = Array.from(labels, label =>
    label
      .replaceAll(/[^\p{L}\p{M}\p{N} ]/gu, '.')
      .replaceAll(/[aceinouеи]/g, letter => foldedLetters[letter]!)
      .replaceAll('ss', '(?:ss|ß)'),
  )
  const pattern = String.raw`(?:^|\n)[ \t]{0,4}(?:[-*•] )?(?:${words.join('|')}) ?[:：=]`
  return { word: ':', pattern, isName: true }
}
