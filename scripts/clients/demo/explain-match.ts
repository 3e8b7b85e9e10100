import { monthName } from '#scripts/clients/demo/relative-dates.ts'
import { termsOf } from '#shared/search/words/index-terms.ts'

/** A word with inner punctuation, such as KV-70418-R or 4:21:37. */
const wordPattern = /[\p{L}\p{N}](?:[\p{L}\p{N}'’.:-]*[\p{L}\p{N}])?/gu

/** The index terms that are words; other terms mark the kind of a text. */
const indexedWords = (text: string): string[] =>
  termsOf(text).filter(term => /^[\p{L}\p{N}]/u.test(term))

/**
 * The words of a text that have an index term in common with the question, in the spelling of the text.
 * Of several words with the same term, the first.
 */
export function sharedWords(question: string, text: string): string[] {
  const questionWords = new Set(indexedWords(question))
  const shared: string[] = []
  for (const [word] of text.matchAll(wordPattern)) {
    const matches = indexedWords(word).filter(term => questionWords.has(term))
    if (matches.length > 0) shared.push(word)
    for (const term of matches) questionWords.delete(term)
  }
  return shared
}

/** A short description of what a memory has in common with the question. */
export function explainMatch(question: string, { text, at }: { text: string; at: number }): string {
  const shared = sharedWords(question, text)
  const reasons = [
    ...(question.includes(monthName(at)) ? [`said in ${monthName(at)}`] : []),
    ...(shared.length > 0 ? [`shares ${shared.map(word => `“${word}”`).join(', ')}`] : []),
  ]
  return reasons.join(', ') || 'no word shared'
}

/** Applies a style to each occurrence of the given words in a text. */
export const highlightWords = (
  text: string,
  words: readonly string[],
  style: (word: string) => string,
): string => text.replaceAll(wordPattern, word => (words.includes(word) ? style(word) : word))

/** The next sentence is started only if at least this many characters of it fit. */
const fillMinimum = 24

/**
 * The part of a text that has most of the given words, in at most `charactersMax` characters without
 * the `…` that marks omitted text. It consists of full sentences, then the start of the next one.
 */
export function excerptAround(
  text: string,
  words: readonly string[],
  charactersMax: number,
): string {
  const sentences = splitSentences(text)
  const counts = sentences.map(sentence => words.filter(word => sentence.includes(word)).length)
  let first = counts.indexOf(Math.max(...counts))
  let last = first
  const lengthWith = (from: number, to: number) =>
    sentences
      .slice(from, to + 1)
      .join('')
      .trim().length
  if (lengthWith(first, last) > charactersMax) {
    const cut = cutAroundWords(sentences[first]!.trim(), words, charactersMax)
    return addEllipses(cut, first > 0, last < sentences.length - 1)
  }
  // Following sentences come first: they are more often an explanation than preceding ones.
  while (last + 1 < sentences.length && lengthWith(first, last + 1) <= charactersMax) last++
  const room = charactersMax - lengthWith(first, last) - 1
  const next = sentences[last + 1]
  if (next && room >= fillMinimum) {
    const excerpt = sentences.slice(first, last + 1).join('')
    return addEllipses(excerpt + next.slice(0, next.lastIndexOf(' ', room)), first > 0, true)
  }
  while (first > 0 && lengthWith(first - 1, last) <= charactersMax) first--
  const excerpt = sentences
    .slice(first, last + 1)
    .join('')
    .trim()
  return addEllipses(excerpt, first > 0, last < sentences.length - 1)
}

const addEllipses = (text: string, before: boolean, after: boolean): string =>
  `${before && !text.startsWith('…') ? '… ' : ''}${text}${after && !text.endsWith('…') ? ' …' : ''}`

const sentenceSegmenter = new Intl.Segmenter('en', { granularity: 'sentence' })

/** Splits without loss, and not after "Dr." or initials, which the segmenter takes for sentence ends. */
function splitSentences(text: string): string[] {
  const sentences: string[] = []
  for (const { segment } of sentenceSegmenter.segment(text)) {
    if (/\b(?:Dr|Mrs?|Ms|St|\p{Lu})\.\s*$/u.test(sentences.at(-1) ?? '')) {
      sentences.push(sentences.pop() + segment)
    } else sentences.push(segment)
  }
  return sentences
}

/** Cuts a part out of one sentence between words, with the first of `words` after a third of it. */
function cutAroundWords(sentence: string, words: readonly string[], charactersMax: number): string {
  const positions = words.map(word => sentence.indexOf(word)).filter(position => position >= 0)
  // One that stands inside a longer word stays with it, since cuts are between words.
  const middle = positions.length > 0 ? sentence.lastIndexOf(' ', Math.min(...positions)) + 1 : 0
  const latest = sentence.length - charactersMax
  const from = Math.max(0, Math.min(middle - Math.floor(charactersMax / 3), latest))
  const start = from === 0 ? 0 : sentence.indexOf(' ', from) + 1
  const end = start + charactersMax
  const stop = end >= sentence.length ? sentence.length : sentence.lastIndexOf(' ', end)
  const excerpt = sentence.slice(start, stop > start ? stop : end).trim()
  return `${start > 0 ? '… ' : ''}${excerpt}${stop < sentence.length ? ' …' : ''}`
}
