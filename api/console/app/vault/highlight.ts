import { html, type Children } from '#api/console/app/html.ts'
import { stemOf } from '#shared/search/words/stem.ts'
import { stopWords } from '#shared/search/words/stop-words.ts'

const words = /[\p{L}\p{N}]+(?:['’]\p{L}+)?/gu

/** Folded and stemmed as the service does it, so that what meets there is marked here. */
const keyOf = (word: string): string =>
  stemOf(
    word
      .toLowerCase()
      .normalize('NFKD')
      .replace(/\p{M}/gu, '')
      .replace(/['’](?:s|m|re|ve|ll|d)$/, '')
      .replace(/['’]/g, ''),
  )

const isStop = (word: string): boolean => stopWords.has(word.toLowerCase().replace(/['’]/g, ''))

/** The words of a question that can meet words of a text. */
export const keysOf = (question: string): Set<string> =>
  new Set(
    [...question.matchAll(words)].filter(([word]) => !isStop(word)).map(([word]) => keyOf(word)),
  )

/** A text with the words marked that it has in common with a question, and what these are. */
export function marked(text: string, keys: ReadonlySet<string>): { view: Children; met: string[] } {
  const pieces: Children[] = []
  const met = new Set<string>()
  let end = 0
  for (const { 0: word, index } of text.matchAll(words)) {
    if (isStop(word) || !keys.has(keyOf(word))) continue
    pieces.push(text.slice(end, index), html`<mark>${word}</mark>`)
    met.add(word.toLowerCase())
    end = index + word.length
  }
  return { view: [...pieces, text.slice(end)], met: [...met] }
}
