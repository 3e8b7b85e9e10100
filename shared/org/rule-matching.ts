import type { OrgPolicy, PolicyRule } from '#shared/org/org-policy.postgres.ts'

/** Longest high-level note, in characters. */
export const noteMax = 200

/** Words this short are looked for as whole words: `art` is not in `artist`. */
const shortWord = 3

/**
 * Whether a text holds what a rule matches: its words as they stand, upper or lower case, accents,
 * width, invisible characters and white space aside, from the beginning of a word on: `rent` is in
 * `rental`, and not in `current`. Models judge what a text is about; this is the fence behind them, so
 * it matches too much rather than too little.
 */
export function matchesRule({ match }: PolicyRule, text: string): boolean {
  const wanted = normalizeForMatch(match)
  if (wanted === '') return false
  const within = normalizeForMatch(text)
  if (scriptsWithoutSpaces.test(wanted)) return within.includes(wanted)
  const isShort = wanted.length <= shortWord
  for (let at = within.indexOf(wanted); at >= 0; at = within.indexOf(wanted, at + 1)) {
    const [before, after] = [within.slice(0, at), within.slice(at + wanted.length)]
    const continuesBefore =
      startsWithWordCharacter.test(wanted) && endsWithWordCharacter.test(before)
    const continuesAfter =
      isShort && endsWithWordCharacter.test(wanted) && startsWithWordCharacter.test(after)
    if (!continuesBefore && !continuesAfter) return true
  }
  return false
}

/** Whether a rule has no words, and so would match nothing. */
export const isEmptyRule = ({ match }: Pick<PolicyRule, 'match'>): boolean =>
  normalizeForMatch(match) === ''

/** Whether content of this text is never stored. */
export const matchesAntiRule = (
  { antiRules }: Pick<OrgPolicy, 'antiRules'>,
  text: string,
): boolean => antiRules.some(rule => matchesRule(rule, text))

/** The first rule under which content of this text is stored only as a short note. */
export const findExecRule = (
  { execRules }: Pick<OrgPolicy, 'execRules'>,
  text: string,
): PolicyRule | undefined => execRules.find(rule => matchesRule(rule, text))

/**
 * A note that is short whatever it was: cut at the end of a word, an ellipsis after it.
 *
 * @returns at most `noteMax` characters.
 */
export function truncateNote(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  if (line.length <= noteMax) return line
  const cut = truncateText(line, noteMax - 1)
  const end = cut.lastIndexOf(' ')
  return `${end > noteMax / 2 ? cut.slice(0, end) : cut}…`
}

/** The beginning of a text, without half a character at its end. */
export const truncateText = (text: string, max: number): string =>
  text.slice(0, max).replace(/[\uD800-\uDBFF]$/, '')

/** The note that replaces content which the model did not shorten. */
export const fallbackNote = ({ match }: PolicyRule): string => truncateNote(`Came up: ${match}`)

/** Scripts that put no space between words, or, as Korean, between a word and its endings. */
const scriptsWithoutSpaces =
  /\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Hangul}|\p{Script=Thai}|\p{Script=Lao}|\p{Script=Khmer}|\p{Script=Myanmar}/u
const endsWithWordCharacter = /[\p{L}\p{N}]$/u
const startsWithWordCharacter = /^[\p{L}\p{N}]/u

const normalizeForMatch = (text: string): string =>
  text
    .normalize('NFKD')
    .replaceAll(/[\u0300-\u036F]|\p{Cf}/gu, '')
    .toUpperCase()
    .toLowerCase()
    .normalize('NFKC')
    .replaceAll(/\s+/g, ' ')
    .trim()
