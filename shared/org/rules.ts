import type { OrgPolicy, Rule } from '#shared/org/org-policy.postgres.ts'

/** Longest high-level note, in characters. */
export const noteMax = 200

/** Words this short are looked for as whole words: `art` is not in `artist`. */
const shortWord = 3

/**
 * Whether a text holds what a rule matches: its words as they stand, upper or lower case, accents,
 * width, invisible characters and white space aside, from the beginning of a word on: `rent` is in
 * `rental`, and not in `current`. Models judge what a text is about; this is the fence behind them, so
 * it rather matches too much.
 */
export function matches({ match }: Rule, text: string): boolean {
  const wanted = folded(match)
  if (wanted === '') return false
  const within = folded(text)
  if (unspaced.test(wanted)) return within.includes(wanted)
  const isShort = wanted.length <= shortWord
  for (let at = within.indexOf(wanted); at >= 0; at = within.indexOf(wanted, at + 1)) {
    const [before, after] = [within.slice(0, at), within.slice(at + wanted.length)]
    const goesOnBefore = beginsInWord.test(wanted) && endsInWord.test(before)
    const goesOnAfter = isShort && endsInWord.test(wanted) && beginsInWord.test(after)
    if (!goesOnBefore && !goesOnAfter) return true
  }
  return false
}

/** Whether a rule has no words, and so would match nothing. */
export const isWordless = ({ match }: Pick<Rule, 'match'>): boolean => folded(match) === ''

/** Whether content of this text is never stored. */
export const isForbidden = ({ antiRules }: Pick<OrgPolicy, 'antiRules'>, text: string): boolean =>
  antiRules.some(rule => matches(rule, text))

/** The first rule under which content of this text is stored only as a short note. */
export const noteRuleOf = (
  { execRules }: Pick<OrgPolicy, 'execRules'>,
  text: string,
): Rule | undefined => execRules.find(rule => matches(rule, text))

/**
 * A note that is short whatever it was: cut at the end of a word, an ellipsis after it.
 *
 * @returns at most `noteMax` characters.
 */
export function shortNote(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  if (line.length <= noteMax) return line
  const cut = shortenedTo(line, noteMax - 1)
  const end = cut.lastIndexOf(' ')
  return `${end > noteMax / 2 ? cut.slice(0, end) : cut}…`
}

/** The beginning of a text, without half a character at its end. */
export const shortenedTo = (text: string, max: number): string =>
  text.slice(0, max).replace(/[\uD800-\uDBFF]$/, '')

/** What is kept of content that ought to have come as a note and did not: that it came up. */
export const bareNote = ({ match }: Rule): string => shortNote(`Came up: ${match}`)

/** Scripts that put no space between words, or, as Korean, between a word and its endings. */
const unspaced =
  /\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Hangul}|\p{Script=Thai}|\p{Script=Lao}|\p{Script=Khmer}|\p{Script=Myanmar}/u
const endsInWord = /[\p{L}\p{N}]$/u
const beginsInWord = /^[\p{L}\p{N}]/u

const folded = (text: string): string =>
  text
    .normalize('NFKD')
    .replaceAll(/[\u0300-\u036F]|\p{Cf}/gu, '')
    .toUpperCase()
    .toLowerCase()
    .normalize('NFKC')
    .replaceAll(/\s+/g, ' ')
    .trim()
