import type { TurnMessage } from '#shared/domain/job-payloads.ts'
import type { OrgPolicy, PolicyRule } from '#shared/org/base/org-policy.postgres.ts'

/** Longest high-level note, in characters. */
export const noteMax = 200

/** Words up to this length match whole words only: `art` is not in `artist`. */
const shortWord = 3

/**
 * Whether a text contains the words of a rule, from the beginning of a word on: `rent` is in `rental`, and not in
 * `current`. Case, accents, width, invisible characters, look-alike letters and white space do not matter, nor do
 * English inflections: `salary` is in `salaries`. Models judge what a text is about; this check stands behind them
 * and matches too much rather than too little. The time is linear in the text.
 */
export const matchesRule = (rule: PolicyRule, text: string): boolean =>
  isRuleIn(rule, toSearchedText(text))

function isRuleIn({ match }: PolicyRule, text: { normal: string; stems: string }): boolean {
  const wanted = toSearchedText(match)
  if (wanted.normal === '') return false
  if (scriptsWithoutSpaces.test(wanted.normal)) return text.normal.includes(wanted.normal)
  if (beginsWord(wanted.normal, text.normal)) return true
  return hasInflection(match, wanted.normal) && text.stems.includes(wanted.stems)
}

function beginsWord(wanted: string, within: string): boolean {
  const isShort = wanted.length <= shortWord
  for (let at = within.indexOf(wanted); at >= 0; at = within.indexOf(wanted, at + 1)) {
    const end = at + wanted.length
    // One character on each side, which may take two units: the pattern would read all of the rest.
    const [before, after] = [within.slice(Math.max(0, at - 2), at), within.slice(end, end + 2)]
    const continuesBefore =
      startsWithWordCharacter.test(wanted) && endsWithWordCharacter.test(before)
    const continuesAfter =
      isShort && endsWithWordCharacter.test(wanted) && startsWithWordCharacter.test(after)
    if (!continuesBefore && !continuesAfter) return true
  }
  return false
}

export const isEmptyRule = ({ match }: Pick<PolicyRule, 'match'>): boolean =>
  normalizeForMatch(match) === ''

/** Finds the first rule under which a text is not stored. */
export const findAntiRule = (
  { antiRules }: Pick<OrgPolicy, 'antiRules'>,
  text: string,
): PolicyRule | undefined => {
  const searched = toSearchedText(text)
  return antiRules.find(rule => isRuleIn(rule, searched))
}

export const matchesAntiRule = (policy: Pick<OrgPolicy, 'antiRules'>, text: string): boolean =>
  findAntiRule(policy, text) !== undefined

/** The part of a turn that an anti-rule kept from the model. */
export type WithheldPart = 'turn' | 'answer'

/**
 * Returns the turns that a model may see: without turns in which a member's words match an anti-rule, and without
 * answers where only these do.
 */
export function withholdByAntiRules<Spoken extends Pick<TurnMessage, 'role' | 'text'>>(
  policy: Pick<OrgPolicy, 'antiRules'>,
  turns: readonly Spoken[][],
): { turns: Spoken[][]; withheld: WithheldPart | null } {
  const parts = turns.map(messages => {
    if (!matchesAntiRule(policy, joinTexts(messages))) return { messages, withheld: null }
    const said = messages.filter(({ role }) => role === 'user')
    const isTurn = matchesAntiRule(policy, joinTexts(said))
    return isTurn
      ? { messages: [], withheld: 'turn' as const }
      : { messages: said, withheld: 'answer' as const }
  })
  const reasons = new Set(parts.map(({ withheld }) => withheld))
  return {
    turns: parts.flatMap(({ messages }) => (messages.length > 0 ? [messages] : [])),
    withheld: (['turn', 'answer'] as const).find(one => reasons.has(one)) ?? null,
  }
}

export const joinTexts = (messages: readonly Pick<TurnMessage, 'text'>[]): string =>
  messages.map(({ text }) => text).join('\n')

/** Finds the first rule under which a text is stored only as a short note. */
export const findExecRule = (
  { execRules }: Pick<OrgPolicy, 'execRules'>,
  text: string,
): PolicyRule | undefined => {
  const searched = toSearchedText(text)
  return execRules.find(rule => isRuleIn(rule, searched))
}

/** Cuts a text at the end of a word, with an ellipsis. @returns at most `noteMax` characters. */
export function truncateNote(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim()
  if (line.length <= noteMax) return line
  const cut = truncateText(line, noteMax - 1)
  const end = cut.lastIndexOf(' ')
  return `${end > noteMax / 2 ? cut.slice(0, end) : cut}…`
}

/** Cuts a text without leaving half a character. */
export const truncateText = (text: string, max: number): string =>
  text.slice(0, max).replace(/[\uD800-\uDBFF]$/, '')

/** The note in place of content that the model did not shorten. */
export const fallbackNote = ({ match }: PolicyRule): string => truncateNote(`Came up: ${match}`)

/** Scripts without spaces between words, or, as Korean, between a word and its endings. */
const scriptsWithoutSpaces =
  /\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Hangul}|\p{Script=Thai}|\p{Script=Lao}|\p{Script=Khmer}|\p{Script=Myanmar}/u
/** Letters of Cyrillic, Greek and Latin extensions that look like a Latin one in upper or lower case. */
const lookAlikes: Record<string, string> = Object.fromEntries(
  [
    ['авекмнорстухіјѕһԁӏԛԝ', 'abekmhopctyxijshdlqw'],
    ['αβεζηικμνορτυχ', 'abezhikmvoptyx'],
    ['ıɑɡɩ', 'iagi'],
  ].flatMap(([from, to]) => Array.from(from!, (letter, at) => [letter, to![at]!])),
)
const lookAlikePattern = new RegExp(`[${Object.keys(lookAlikes).join('')}]`, 'gu')

const endsWithWordCharacter = /[\p{L}\p{N}]$/u
const startsWithWordCharacter = /^[\p{L}\p{N}]/u

const normalizeForMatch = (text: string): string =>
  text
    .normalize('NFKD')
    .replaceAll(/[\u0300-\u036F]|\p{Cf}/gu, '')
    .toUpperCase()
    .toLowerCase()
    .normalize('NFKC')
    .replaceAll(lookAlikePattern, letter => lookAlikes[letter]!)
    .replaceAll(/\s+/g, ' ')
    .trim()

function toSearchedText(text: string): { normal: string; stems: string } {
  const normal = normalizeForMatch(text)
  const words = normal.match(/[\p{L}\p{N}]+/gu) ?? []
  return { normal, stems: ` ${words.map(stemOf).join(' ')} ` }
}

/** Words with other signs than letters, such as `c++`, have no inflection. */
const hasInflection = (match: string, normal: string): boolean =>
  match.trim() !== '' && /^[\p{L}\p{N}\s'’_-]+$/u.test(normal)

/** Shortest word that is stemmed. */
const inflectedMin = 4

/** Returns what English inflections of a word have in common. */
function stemOf(word: string): string {
  if (word.length < inflectedMin) return word
  const singular = toSingular(word)
  const verb = withoutVerbEnding(singular)
  const base = verb.length >= 3 && /[aeiouy]./.test(verb) ? withoutDoubledEnd(verb) : singular
  return base.length < inflectedMin ? base : base.replace(/e$/, '').replace(/y$/, 'i')
}

function toSingular(word: string): string {
  if (word.length > inflectedMin && word.endsWith('ies')) return `${word.slice(0, -3)}y`
  if (/(?:ss|x|z|ch|sh)es$/.test(word)) return word.slice(0, -2)
  return word.length > inflectedMin && /[^sui]s$/.test(word) ? word.slice(0, -1) : word
}

function withoutVerbEnding(word: string): string {
  if (word.endsWith('ing')) return word.slice(0, -3)
  return word.endsWith('ed') ? word.slice(0, -2) : ''
}

const withoutDoubledEnd = (verb: string): string =>
  /([^aeioulsz])\1$/.test(verb) ? verb.slice(0, -1) : verb
