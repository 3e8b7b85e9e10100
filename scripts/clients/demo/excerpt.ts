import { termsOf } from '#shared/search/words/index-terms.ts'

/** A word with inner punctuation, such as KV-70418-R or 4:21:37. */
const wordPattern = /[\p{L}\p{N}](?:[\p{L}\p{N}'’.:-]*[\p{L}\p{N}])?/gu

/** The index terms that are words; other terms mark the kind of a text. */
const indexedWords = (text: string): string[] =>
  termsOf(text).filter(term => /^[\p{L}\p{N}]/u.test(term))

/**
 * Returns the words of a text that have an index term in common with the question, in the spelling of the text.
 * The first of several words with the same term stands for them.
 */
export function sharedWords(question: string, text: string): string[] {
  const questionWords = new Set(indexedWords(question))
  return [...text.matchAll(wordPattern)].flatMap(([word]) => {
    const matches = indexedWords(word).filter(term => questionWords.has(term))
    for (const term of matches) questionWords.delete(term)
    return matches.length > 0 ? [word] : []
  })
}

/** Applies a style to each occurrence of the given words in a text. */
export const highlightWords = (
  text: string,
  words: readonly string[],
  style: (word: string) => string,
): string => text.replaceAll(wordPattern, word => (words.includes(word) ? style(word) : word))

/** The end of a sentence with the space behind it; "Dr." and initials end none. */
const sentenceEnd = /(?<!\b(?:Dr|Mrs?|Ms|St|\p{Lu}))[.!?…]["'”’)]*\s+/gu

/**
 * Returns the part of a text that has most of the given words: from the beginning of a sentence, or from before
 * its first word where that is further in, at most `charactersMax` characters without the `…` of omitted text.
 */
export function excerptAround(
  text: string,
  words: readonly string[],
  charactersMax: number,
): string {
  const starts = [0, ...[...text.matchAll(sentenceEnd)].map(end => end.index + end[0].length)]
  const sentences = starts.map((start, index) => text.slice(start, starts[index + 1]))
  const counts = sentences.map(sentence => words.filter(word => sentence.includes(word)).length)
  const best = counts.indexOf(Math.max(...counts))
  const positions = words.map(word => text.indexOf(word, starts[best])).filter(at => at >= 0)
  // Where the rest of the text leaves room, sentences before the best one fill it.
  let start = starts.find((at, index) => index === best || text.length - at <= charactersMax) ?? 0
  if (positions.length > 0) {
    const first = text.lastIndexOf(' ', Math.min(...positions)) + 1
    const last = `${text} `.indexOf(' ', Math.min(...positions))
    const from = first - Math.floor(charactersMax / 3)
    if (last - start > charactersMax && from > 0) start = text.indexOf(' ', from) + 1
  }
  const end = start + charactersMax
  const stop = end >= text.length ? text.length : text.lastIndexOf(' ', end)
  const excerpt = text.slice(start, stop > start ? stop : end).trim()
  return `${start > 0 ? '… ' : ''}${excerpt}${end < text.length && !excerpt.endsWith('…') ? ' …' : ''}`
}
