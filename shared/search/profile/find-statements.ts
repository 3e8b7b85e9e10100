import type { ProfileKind } from '#shared/domain/profile-kinds.ts'
import {
  alternativesOf,
  languages,
  phrasesOf,
  wordsOf,
  type Language,
  type StatementFrame,
} from '#shared/search/languages/languages.ts'
import { notedAttributes } from '#shared/search/query/attributes.ts'
import { monthOf } from '#shared/search/query/calendar.ts'
import { isAsking } from '#shared/search/query/sentence-kinds.ts'
import { splitSentences } from '#shared/search/query/split-sentences.ts'
import { foldText } from '#shared/search/words/writing-systems.ts'

/** One thing that a statement says; a later one of the same kind and subject replaces it. */
export type Fact = {
  kind: ProfileKind
  /** Such as `home` or `birthday mother`. */
  subject: string
  /** Folded; equal for equal statements. */
  value: string
}

/** A sentence in which a person says something that lasts. */
export type Statement = {
  kind: ProfileKind
  /** The sentence as it was written: a part of the text. */
  quote: string
  /** What it says, where that can be replaced. */
  facts: readonly Fact[]
  /** What no longer holds; with an empty value all that is known of the subject. */
  ends: readonly Fact[]
}

type Rule = Omit<StatementFrame, 'pattern' | 'cues'> & { kind: ProfileKind; pattern: RegExp }

/** A value: all but marks that end it, in any script; bounded, so that matching stays linear. */
const valuePattern = String.raw`(?<value>[^\s,;:!?.()\[\]"“”<>][^\n,;:!?()\[\]"“”<>]{0,60})`

/** The rules of a language by their cues. */
function compileRules({ statements = {}, kin = [], parts = {} }: Language): [string, Rule][] {
  const definitions: Record<string, string> = {
    ...parts,
    x: valuePattern,
    kin: `(?<subject>${kin.join('|')})`,
    people: `(?:${kin.join('|')})`,
    end: '(?![a-z0-9ß-ɏ])',
  }
  const compile = (pattern: string): RegExp => {
    const source = pattern.replaceAll(/\{([a-z]+)\}/gi, (_, name: string) => definitions[name]!)
    // A range of Latin letters: a pattern with classes of Unicode takes ten milliseconds to compile.
    return new RegExp(`(?<![a-z0-9ß-ɏ])(?:${source})`, 'dg')
  }
  return Object.entries(statements).flatMap(([kind, frames]) =>
    frames.flatMap(({ cues, pattern, ...rest }) => {
      const rule = { ...rest, kind: kind as ProfileKind, pattern: compile(pattern) }
      return cues.split(' ').map((cue): [string, Rule] => [cue, rule])
    }),
  )
}

const rulesByCue = Map.groupBy([...languages.values()].flatMap(compileRules), ([cue]) => cue)

const cuesBySubject = Map.groupBy(
  [...rulesByCue].flatMap(([cue, rules]) =>
    rules.map(([, { subject = '' }]) => ({ cue, subject })),
  ),
  ({ subject }) => subject,
)

/** Returns words of which every sentence about one of some subjects has one. */
export const statementCues = (subjects: Iterable<string>): string[] =>
  Array.from(subjects).flatMap(subject => cuesBySubject.get(subject)?.map(({ cue }) => cue) ?? [])

/**
 * Finds the sentences of a text in which a person says what lasts, in the order of the text; one of several kinds comes
 * once for each. Quotes are parts of the text. Linear in its length.
 */
export const findStatements = (text: string): Statement[] =>
  quotableSentences(text).flatMap(statementsOf)

/** What notes and sentences say alike: kinds of a profile by the attribute of a note. */
const kindsByAttribute: Partial<Record<string, ProfileKind>> = { home: 'place', employer: 'role' }

/** Finds also the statements of a note about home and employer ("Location: Berlin"). */
export const statementsAndNotes = (text: string): Statement[] => [
  ...findStatements(text),
  ...notedAttributes(text).flatMap(subject => {
    const kind = kindsByAttribute[subject]
    if (!kind) return []
    const value = foldText(text.slice(text.search(/[:：=]/) + 1)).trim()
    return [{ kind, quote: text, facts: [{ kind, subject, value }], ends: [] }]
  }),
]

function statementsOf(sentence: string): Statement[] {
  const lower = lowerCase(sentence)
  const byKind = new Map<ProfileKind, { facts: Fact[]; ends: Fact[] }>()
  for (const rule of rulesFor(lower)) {
    for (const match of matchesOf(rule, lower)) {
      const found = isQuoted(lower, match.index) ? null : factsOf(rule, match, sentence)
      if (!found) continue
      const known = byKind.get(rule.kind) ?? { facts: [], ends: [] }
      byKind.set(rule.kind, known)
      known.facts.push(...found.facts)
      known.ends.push(...found.ends)
    }
  }
  if (byKind.size === 0 || /[?？][\p{P}\s]{0,5}$|^¿/u.test(sentence)) return []
  // "When I ask for code, add tests": instructions begin like questions and conditions; "am" is German.
  const isInstructionAtMost =
    supposing.test(lower) || (isAsking(sentence) && !lower.startsWith('am '))
  return [...byKind]
    .filter(([kind]) => kind === 'instruction' || !isInstructionAtMost)
    .map(([kind, found]) => ({ kind, quote: sentence, ...found }))
}

/** Lower case, character by character, so that places in it are those of the sentence. */
function lowerCase(sentence: string): string {
  const text = sentence.replaceAll('’', "'")
  const lower = text.toLowerCase()
  if (lower.length === text.length) return lower
  return Array.from(text, one =>
    one.toLowerCase().length === one.length ? one.toLowerCase() : one,
  ).join('')
}

const rulesFor = (lower: string): Set<Rule> =>
  new Set(
    (lower.match(/[\p{L}\p{N}]+/gu) ?? []).flatMap(
      word => rulesByCue.get(word)?.map(([, rule]) => rule) ?? [],
    ),
  )

type RuleMatch = RegExpExecArray & { indices: RegExpIndicesArray }

/** `matchAll` copies the pattern for each text, which takes ten times the time of looking. */
function matchesOf({ pattern }: Rule, text: string): RuleMatch[] {
  const matches: RuleMatch[] = []
  pattern.lastIndex = 0
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
    matches.push(match as RuleMatch)
    if (match[0] === '') pattern.lastIndex++
  }
  return matches
}

const wholeWord = (alternatives: string): string => `(?<!\\p{L})(?:${alternatives})(?!\\p{L})`

/** What is only imagined, wished or conditional. */
const supposing = new RegExp(
  `${wholeWord(alternativesOf('supposing'))}|^[\\p{P}\\s]{0,3}(?:${wordsOf('supposingBeginnings').join('|')})(?!\\p{L})`,
  'u',
)

/** Whether a place is within quotation marks: the words of another person or a text. */
function isQuoted(text: string, index: number): boolean {
  const before = text.slice(0, index)
  const straight = before.split('"').length - 1
  const open = (before.match(/[“«„]/gu) ?? []).length
  const close = (before.match(/[”»]/gu) ?? []).length
  return straight % 2 === 1 || open > close
}

/** A message that gives a text to work on, which are not the person's own words. */
const givenText = new RegExp(
  `^[\\p{P}\\s]{0,5}(?:(?:${phrasesOf('politeBeginnings').join('|')}) )?(?:${alternativesOf('givenTexts')})(?!\\p{L})`,
  'iu',
)
const fence = /^\s{0,3}(?:```|~~~)/
/** Quoted text, code, and rows of tables. */
const notProse = /^(?:>|\||\t| {4})/
const bullet = /^(?:[-*•–—]|\d{1,2}[.)])\s+/

/** Returns the sentences of a text, without code, quoted lines, bullets and given texts. */
function quotableSentences(text: string): string[] {
  if (givenText.test(text.slice(0, 200))) return []
  const sentences: string[] = []
  let isCode = false
  for (const line of text.split('\n')) {
    if (fence.test(line)) isCode = !isCode
    else if (!isCode && !notProse.test(line)) {
      for (const sentence of splitSentences(line)) sentences.push(sentence.replace(bullet, ''))
    }
  }
  return sentences
}

/** Returns what a sentence says by a rule; null where the rule wants a name or a date and there is none. */
function factsOf(
  rule: Rule,
  match: RuleMatch,
  sentence: string,
): { facts: Fact[]; ends: Fact[] } | null {
  const { kind, subject, ends } = rule
  const at = match.indices.groups?.['value']
  const written = at ? sentence.slice(...at) : ''
  const name = leadingName(written, sentence)
  if (rule.isName && name === '') return null
  if (rule.isDate && !/\d/.test(written) && !hasMonth(written)) return null
  const isPlaceName = name !== '' && (subject === 'home' || subject === 'employer')
  const value = normalized(rule.isName || isPlaceName ? name : written)
  const toFact = (what: NonNullable<Rule['ends']>, newValue: string): Fact => ({
    kind: what.kind,
    subject: fillSubject(what.subject, match, value),
    value: newValue,
  })
  // A home that is not named, such as "a small flat", replaces no other.
  const isReplaced = subject !== undefined && !(subject === 'home' && name === '')
  return {
    facts: isReplaced ? [toFact({ kind, subject }, rule.value ?? value)] : [],
    ends: ends ? [toFact(ends, ends.subject.includes('{value}') ? '' : value)] : [],
  }
}

function fillSubject(subject: string, { groups = {} }: RuleMatch, value: string): string {
  const { subject: named = '', value: first = '', other = '' } = groups
  const pair = [normalized(first), normalized(other)].toSorted().join(' or ')
  return foldText(
    subject.replace('{subject}', named.trim()).replace('{value}', value).replace('{pair}', pair),
  )
}

const hasMonth = (written: string): boolean =>
  (written.match(/\p{L}+/gu) ?? []).some(word => monthOf(word) !== undefined)

const nameWord = /^\p{Lu}[\p{L}\p{N}'’&.-]*$/u
const nameWordsMax = 4
/** Words that begin no name where nothing has a capital letter. */
const commonBeginning = new RegExp(`^(?:${alternativesOf('commonBeginnings')})$`, 'u')
const notNames = new Set(wordsOf('notNames'))

/** Returns the words at the beginning of a value that are a name; empty when it begins with none. */
function leadingName(written: string, sentence: string): string {
  const words = written.trim().split(/\s+/u, nameWordsMax)
  const first = (words[0] ?? '').toLowerCase()
  if (first === '' || notNames.has(first)) return ''
  if (!/\p{Lu}/u.test(sentence)) return commonBeginning.test(first) ? '' : first
  const end = words.findIndex(word => !nameWord.test(word))
  return words.slice(0, end < 0 ? words.length : end).join(' ')
}

/** Where the named thing ends and what follows says more of it. */
const valueEnd = new RegExp(`${wholeWord(phrasesOf('valueEnds').join('|'))}.*$`, 'u')
const leadingAdverb = new RegExp(`^(?:${wordsOf('leadingAdverbs').join('|')})\\s+`, 'u')
const article = new RegExp(`^(?:${alternativesOf('articles')})\\s+`, 'u')

/** Returns a value as it is compared: without articles, what follows, marks and case. */
const normalized = (written: string): string =>
  foldText(
    written
      .toLowerCase()
      .replace(leadingAdverb, '')
      .replace(valueEnd, '')
      .trim()
      .replace(article, ''),
  )
    .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
    .trim()
