import { html, type Children } from '#api/console/app/html.ts'
import { stemOf } from '#shared/search/words/stem.ts'
import { stopWords } from '#shared/search/words/stop-words.ts'

const wordPattern = /[\p{L}\p{N}]+(?:['’]\p{L}+)?/gu

/** Folds and stems words as the service does, so that its matches are highlighted. */
const stemWord = (word: string): string =>
  stemOf(
    word
      .toLowerCase()
      .normalize('NFKD')
      .replace(/\p{M}/gu, '')
      .replace(/['’](?:s|m|re|ve|ll|d)$/, '')
      .replace(/['’]/g, ''),
  )

const isStopWord = (word: string): boolean => stopWords.has(word.toLowerCase().replace(/['’]/g, ''))

/** The words of a query that can match words of a text. */
export const searchTerms = (question: string): Set<string> =>
  new Set(
    [...question.matchAll(wordPattern)]
      .filter(([word]) => !isStopWord(word))
      .map(([word]) => stemWord(word)),
  )

/** A text with its matches of a query highlighted, and the list of these words. */
export function highlightMatches(
  text: string,
  terms: ReadonlySet<string>,
): { view: Children; met: string[] } {
  const fragments: Children[] = []
  const matchedWords = new Set<string>()
  let end = 0
  for (const { 0: word, index } of text.matchAll(wordPattern)) {
    if (isStopWord(word) || !terms.has(stemWord(word))) continue
    fragments.push(text.slice(end, index), html`<mark>${word}</mark>`)
    matchedWords.add(word.toLowerCase())
    end = index + word.length
  }
  return { view: [...fragments, text.slice(end)], met: [...matchedWords] }
}
