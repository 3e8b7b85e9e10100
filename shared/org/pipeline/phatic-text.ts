import { phrasesOf } from '#shared/search/languages/languages.ts'

/**
 * Greetings, thanks, acknowledgements and requests to go on. "Yes" and "no" are left out: with the answer before
 * them they may state something.
 */
const phaticPhrases = new Set(phrasesOf('phatic'))

/** More cannot be such a phrase. */
const lengthMax = 40

/** Whether a message states nothing, so that no model need look for facts in it. */
export function isPhatic(text: string): boolean {
  if (text.length > lengthMax) return false
  const words =
    text
      .normalize('NFKC')
      .toLowerCase()
      .match(/[\p{L}\p{M}\p{N}]+/gu) ?? []
  return words.length === 0 || phaticPhrases.has(words.join(' '))
}
