import { monthName } from '#scripts/demo/relative-dates.ts'
import { termsOf } from '#shared/search/words/index-terms.ts'

/** A word with what holds it together, such as KV-70418-R or 4:21:37. */
const wordPattern = /[\p{L}\p{N}](?:[\p{L}\p{N}'’.:-]*[\p{L}\p{N}])?/gu

/** Terms of the index that are words; the others mark what kind of text it is. */
const indexedWords = (text: string): string[] =>
  termsOf(text).filter(term => /^[\p{L}\p{N}]/u.test(term))

/**
 * The words of a text that meet a word of the question as the service's own index sees them, as the
 * text spells them; of words that are one to the index, the first.
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

/** In a few words, what a memory of this text and time has in common with the question. */
export function explainMatch(question: string, { text, at }: { text: string; at: number }): string {
  const shared = sharedWords(question, text)
  const reasons = [
    ...(question.includes(monthName(at)) ? [`said in ${monthName(at)}`] : []),
    ...(shared.length > 0 ? [`shares ${shared.map(word => `“${word}”`).join(', ')}`] : []),
  ]
  return reasons.join(', ') || 'no word shared'
}

/** A text with each of the given words, where it stands as a word, in another look. */
export const highlightWords = (
  text: string,
  words: readonly string[],
  look: (word: string) => string,
): string => text.replaceAll(wordPattern, word => (words.includes(word) ? look(word) : word))

/** Room for less of a further sentence than this is left empty. */
const fillMinimum = 24

/**
 * The part of a text that has most of the given words, in at most so many characters besides the `…`
 * that stands where something was left out: whole sentences first, then the beginning of the next.
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
  // What follows explains more often than what came before.
  while (last + 1 < sentences.length && lengthWith(first, last + 1) <= charactersMax) last++
  const room = charactersMax - lengthWith(first, last) - 1
  const next = sentences[last + 1]
  if (next && room >= fillMinimum) {
    const kept = sentences.slice(first, last + 1).join('')
    return addEllipses(kept + next.slice(0, next.lastIndexOf(' ', room)), first > 0, true)
  }
  while (first > 0 && lengthWith(first - 1, last) <= charactersMax) first--
  const kept = sentences
    .slice(first, last + 1)
    .join('')
    .trim()
  return addEllipses(kept, first > 0, last < sentences.length - 1)
}

const addEllipses = (text: string, before: boolean, after: boolean): string =>
  `${before && !text.startsWith('…') ? '… ' : ''}${text}${after && !text.endsWith('…') ? ' …' : ''}`

const sentenceSegmenter = new Intl.Segmenter('en', { granularity: 'sentence' })

/** Joined again they are the text. The segmenter takes "Dr." and initials for ends. */
function splitSentences(text: string): string[] {
  const sentences: string[] = []
  for (const { segment } of sentenceSegmenter.segment(text)) {
    if (/\b(?:Dr|Mrs?|Ms|St|\p{Lu})\.\s*$/u.test(sentences.at(-1) ?? '')) {
      sentences.push(sentences.pop() + segment)
    } else sentences.push(segment)
  }
  return sentences
}

/** A stretch of one sentence, from word end to word end, with the first of the words a third of the way in. */
function cutAroundWords(sentence: string, words: readonly string[], charactersMax: number): string {
  const places = words.map(word => sentence.indexOf(word)).filter(place => place >= 0)
  const middle = places.length > 0 ? Math.min(...places) : 0
  const latest = sentence.length - charactersMax
  const from = Math.max(0, Math.min(middle - Math.floor(charactersMax / 3), latest))
  const start = from === 0 ? 0 : sentence.indexOf(' ', from) + 1
  const end = start + charactersMax
  const stop = end >= sentence.length ? sentence.length : sentence.lastIndexOf(' ', end)
  const kept = sentence.slice(start, stop > start ? stop : end).trim()
  return `${start > 0 ? '… ' : ''}${kept}${stop < sentence.length ? ' …' : ''}`
}
