import { phrasesOf, wordsOf } from '#shared/search/languages/languages.ts'
import { wordsIn } from '#shared/org/pipeline/text-words.ts'

/** Greetings, thanks, acknowledgements; without "yes" and "no", which may state something after an answer. */
const phaticPhrases = new Set(phrasesOf('phatic'))

/** Longest such phrase, in characters. */
const phaticLengthMax = 40

/** Whether a message states nothing, so that no model need look for facts in it. */
export function isPhatic(text: string): boolean {
  if (text.length > phaticLengthMax) return false
  const words = wordsIn(text)
  return words.length === 0 || phaticPhrases.has(words.join(' '))
}

/** How requests begin that ask a model for what it knows anyway, or for code; in lower case. */
const requestBeginnings = phrasesOf('generalRequests').map(words => `${words} `)

/** Names of languages and tools; other names may be of the team's own things. */
const technicalNames = new Set(wordsOf('technicalNames'))

/** Words by which a request may be about the team or someone in it. */
const ownWords = new RegExp(
  `(?<![\\p{L}\\p{N}])(?:${wordsOf('ownWords').join('|')})(?![\\p{L}\\p{N}])`,
  'iu',
)

/** Longer requests may contain a statement. */
const requestLengthMax = 240

/**
 * Whether a message only asks for what any model knows, or about a piece of code, so that no model need look for
 * facts in it: one sentence that begins as such requests do, without a word about the team, a name or a number.
 */
export function isGeneralQuestion(message: string): boolean {
  const text = withoutCode(message)
  if (text.length > requestLengthMax || text === '') return false
  const plain = `${wordsIn(text).join(' ')} `
  if (!requestBeginnings.some(beginning => plain.startsWith(beginning))) return false
  const isOneSentence = !/[.!?。？！]\s|\n/u.test(text)
  return isOneSentence && !ownWords.test(text) && !/\p{N}/u.test(text) && !hasName(text)
}

/** The only text outside of fences of code, trimmed; empty where there is none, or more. */
function withoutCode(message: string): string {
  const parts = message.split('```').map(part => part.trim())
  const outside = parts.filter((part, index) => index % 2 === 0 && part !== '')
  return outside.length === 1 ? outside[0]!.replace(/:$/, '') : ''
}

/** A word in capitals after the first that is no language or tool. */
const hasName = (text: string): boolean =>
  (text.match(/(?<=\s[^\p{L}\p{N}\s]?)\p{Lu}[\p{L}\p{N}]*/gu) ?? []).some(
    word => !technicalNames.has(word.toLowerCase()),
  )
