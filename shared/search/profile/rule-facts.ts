import type { Rule } from '#shared/search/profile/rules/rule.ts'
import type { Fact } from '#shared/search/profile/rules/statement.ts'
import { foldText } from '#shared/search/words/writing-systems.ts'

/** A match with the places of its groups. */
export type RuleMatch = RegExpExecArray & { indices: RegExpIndicesArray }

/**
 * What a sentence says by a rule that it matches.
 *
 * @returns null where the rule wants a name or a date and there is none.
 */
export function factsOf(
  rule: Rule,
  match: RuleMatch,
  sentence: string,
): { facts: Fact[]; ends: Fact[] } | null {
  const written = writtenValue(match, sentence)
  const name = leadingName(written, sentence)
  if (rule.isName && name === '') return null
  if (rule.isDate && !/\d/.test(written) && !monthNames.test(written)) return null
  const value = normalized(rule.isName || isPlaceName(rule, name) ? name : written)
  const toFact = ({ kind, subject }: NonNullable<Rule['ends']>, said: string): Fact => ({
    kind,
    subject: fillSubject(subject, match, value),
    value: said,
  })
  const { kind, subject, ends } = rule
  // A home that is not named, such as "a small flat", replaces no other.
  const isReplaced = subject !== undefined && !(subject === 'home' && name === '')
  return {
    facts: isReplaced ? [toFact({ kind, subject }, rule.value ?? value)] : [],
    ends: ends ? [toFact(ends, ends.subject.includes('{value}') ? '' : value)] : [],
  }
}

const isPlaceName = ({ subject }: Rule, name: string): boolean =>
  name !== '' && (subject === 'home' || subject === 'employer')

function writtenValue({ indices }: RuleMatch, sentence: string): string {
  const at = indices.groups?.['value']
  return at ? sentence.slice(...at) : ''
}

function fillSubject(subject: string, { groups = {} }: RuleMatch, value: string): string {
  const { subject: named = '', value: first = '', other = '' } = groups
  const pair = [normalized(first), normalized(other)].toSorted().join(' or ')
  return foldText(
    subject.replace('{subject}', named.trim()).replace('{value}', value).replace('{pair}', pair),
  )
}

const nameWord = /^\p{Lu}[\p{L}\p{N}'’&.-]*$/u
const wordsOfName = 4
/** Words that begin what is no name where nothing has a capital letter. */
const commonWords =
  /^(?:an?|the|my|our|at|on|in|to|from|for|when|if|not|no|so|very|really|too|just|later|back|tomorrow|today|now|maybe|crazy|asap|fear|peace|one|some|it|this|that|here|there|tired|sick|ill|happy|sad|out|away|home|going|coming|working|getting|having|always|never|also|who|which|and|is|was|has|dead|fine|ok|okay|great|good|bad|busy|late|time|work|ein\w*|der|die|das|dem|den|une?|les?|la|el|los|las|il|lo|een|het|de|um|uma|o|os|as)$/u
/** Words with a capital letter that name no person and no place. */
const notNames =
  /^(?:i|german|french|english|british|american|italian|spanish|portuguese|dutch|swiss|austrian|belgian|irish|scottish|welsh|polish|swedish|danish|norwegian|finnish|russian|ukrainian|turkish|greek|chinese|japanese|korean|indian|brazilian|mexican|canadian|australian|african|asian|european|jewish|muslim|catholic|christian|vegan|vegetarian|monday|tuesday|wednesday|thursday|friday|saturday|sunday|not|ok)$/u

/** The words at the beginning of a value that are a name; empty when it begins with none. */
function leadingName(written: string, sentence: string): string {
  const words = written.trim().split(/\s+/u, wordsOfName)
  const first = (words[0] ?? '').toLowerCase()
  if (first === '' || notNames.test(first)) return ''
  if (!/\p{Lu}/u.test(sentence)) return commonWords.test(first) ? '' : first
  const end = words.findIndex(word => !nameWord.test(word))
  return words.slice(0, end < 0 ? words.length : end).join(' ')
}

const monthNames =
  /(?<![\p{L}])(?:jan|feb|mar|apr|ma[iyj]|jun|jul|ju[iíl]n?|aug|août|aoû|ago|sep|set|o[ckt]t|out|nov|no[vu]|de[czs]|dez|déc|gen|mag|giu|lug|mär|maart|mei|abr|ene|fev|fév|avr)[\p{L}]{0,8}/iu

/** Where the thing that is named ends, and what follows says more of it. */
const tail =
  /(?<![\p{L}])(?:and|but|because|since|so|which|who|where|when|while|although|with|for|from|until|till|now|again|still|too|already|lately|anymore|any more|any longer|at the moment|these days|at present|und|aber|weil|seit|wo|jetzt|nicht mehr|et|mais|depuis|avec|y|pero|desde|con|ahora|e|ma|dal|da quando|mas|com|en|maar|sinds|met)(?![\p{L}]).*$/u
const leadingAdverb = /^(?:now|currently|actually|jetzt|maintenant|ahora|agora|ora|adesso|nu)\s+/u
const article =
  /^(?:an?|the|my|our|ein\w{0,2}|der|die|das|une?|les?|la|l'|el|los|las|un[ao]?|il|lo|gli|i|os?|as?|uma?|een|het|de)\s+/u

/** A value as it is compared: without articles, what follows, marks and case. */
const normalized = (written: string): string =>
  foldText(
    written.toLowerCase().replace(leadingAdverb, '').replace(tail, '').trim().replace(article, ''),
  )
    .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
    .trim()
