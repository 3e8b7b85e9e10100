import { quotableSentences } from '#shared/search/profile/quotable-sentences.ts'
import { factsOf, type RuleMatch } from '#shared/search/profile/rule-facts.ts'
import { joinRules, type Rule } from '#shared/search/profile/rules/rule.ts'
import { dutch } from '#shared/search/profile/rules/dutch.ts'
import { englishAttitudes } from '#shared/search/profile/rules/english-attitudes.ts'
import { englishFacts } from '#shared/search/profile/rules/english.ts'
import { french } from '#shared/search/profile/rules/french.ts'
import { germanAttitudes } from '#shared/search/profile/rules/german-attitudes.ts'
import { germanFacts } from '#shared/search/profile/rules/german.ts'
import { italian } from '#shared/search/profile/rules/italian.ts'
import { portuguese } from '#shared/search/profile/rules/portuguese.ts'
import { russian } from '#shared/search/profile/rules/russian.ts'
import { spanish } from '#shared/search/profile/rules/spanish.ts'
import type { Fact, ProfileKind, Statement } from '#shared/search/profile/rules/statement.ts'
import { isAsking } from '#shared/search/query/asking-words.ts'

const rules = joinRules(
  englishFacts,
  englishAttitudes,
  germanFacts,
  germanAttitudes,
  french,
  spanish,
  portuguese,
  italian,
  dutch,
  russian,
)

const cuesBySubject = Map.groupBy(
  [...rules].flatMap(([cue, ofCue]) => ofCue.flatMap(({ subject = '' }) => ({ cue, subject }))),
  ({ subject }) => subject,
)

/** Words of which every sentence about one of some subjects has one, or the name of its subject. */
export const statementCues = (subjects: Iterable<string>): string[] =>
  Array.from(subjects).flatMap(subject => cuesBySubject.get(subject)?.map(({ cue }) => cue) ?? [])

/**
 * The sentences of a text in which a person says what lasts, in the order of the text; one that is of
 * several kinds comes once for each. Linear in the text. Nothing but what was written is returned.
 */
export function findStatements(text: string): Statement[] {
  return quotableSentences(text).flatMap(statementsOf)
}

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
  if (byKind.size === 0 || asks(sentence)) return []
  // "When I ask for code, add tests": instructions begin like questions and conditions; "am" is German.
  const isInstructionAtMost =
    supposing.test(lower) || (isAsking(sentence) && !lower.startsWith('am '))
  return [...byKind]
    .filter(([kind]) => kind === 'instruction' || !isInstructionAtMost)
    .map(([kind, found]) => ({ kind, quote: sentence, ...found }))
}

/** `matchAll` copies the pattern for each text: ten times the time of looking. */
function matchesOf({ pattern }: Rule, text: string): RuleMatch[] {
  const matches: RuleMatch[] = []
  pattern.lastIndex = 0
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
    matches.push(match as RuleMatch)
    if (match[0] === '') pattern.lastIndex++
  }
  return matches
}

/** In lower case, character by character, so that places in it are those of the sentence. */
function lowerCase(sentence: string): string {
  const text = sentence.replaceAll('’', "'")
  const lower = text.toLowerCase()
  if (lower.length === text.length) return lower
  return Array.from(text, one =>
    one.toLowerCase().length === one.length ? one.toLowerCase() : one,
  ).join('')
}

function rulesFor(lower: string): Set<Rule> {
  const found = new Set<Rule>()
  for (const word of lower.match(/[\p{L}\p{N}]+/gu) ?? []) {
    for (const rule of rules.get(word) ?? []) found.add(rule)
  }
  return found
}

const asks = (sentence: string): boolean => /[?？][\p{P}\s]{0,5}$|^¿/u.test(sentence)

/** What is only imagined, wished or conditional. */
const supposing =
  /(?<![\p{L}])(?:if|imagine|suppose|pretend|wish|would(?! rather)|as though|what if|stell dir|angenommen|würden?|hätte[nst]*|wäre[nst]*|imaginons|ojalá|stel je voor)(?![\p{L}])|^[\p{P}\s]{0,3}(?:wenn|falls|si|quand|se|imagina|immagina|als)(?![\p{L}])/u

/** Whether a place is within quotation marks: another person, or a text, says it. */
function isQuoted(text: string, index: number): boolean {
  const before = text.slice(0, index)
  const straight = before.split('"').length - 1
  const open = (before.match(/[“«„]/gu) ?? []).length
  const close = (before.match(/[”»]/gu) ?? []).length
  return straight % 2 === 1 || open > close
}
