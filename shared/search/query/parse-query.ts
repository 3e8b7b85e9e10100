import type { Role } from '#shared/domain/memory.ts'
import type { TimeSpan } from '#shared/search/query/calendar.ts'
import { askedLabels } from '#shared/search/query/attributes/attributes.ts'
import { parseTimeExpressions } from '#shared/search/query/parse-time-expressions.ts'
import { termWeight } from '#shared/search/words/term-weights.ts'
import { functionTermWeight, isFunctionTerm } from '#shared/search/words/function-terms.ts'
import { isMarkerTerm, termsOf } from '#shared/search/words/index-terms.ts'

export type QueryTerm = { term: string; /** 0 to 1. */ weight: number }

/** A query in parts: its terms, and hints about the answer. */
export type ParsedQuery = {
  /** Without duplicates. */
  terms: QueryTerm[]
  /** The event times it names. */
  times: TimeSpan[]
  /** Terms outside its time expressions and generic words: none in "what happened last week". */
  nonTimeTerms: string[]
  /** Whose turns it asks for: "what did I say", "what did you recommend". */
  role: Role | undefined
  /** It asks how many, how much, how old. */
  wantsNumber: boolean
  /** It asks when. */
  wantsTime: boolean
  /** It asks for the current state, or for the first one. */
  order: 'latest' | 'first' | undefined
  /** Of the notes that answer it; undefined when it asks for no attribute of a person. */
  labels: ReadonlySet<string> | undefined
}

/** Words that are in most questions and in few answers. */
const genericQueryWords: ReadonlySet<string> = new Set(
  'kind type sort name number many much thing mention tell say remind recommend suggest advise list give show previous conversation chat discuss talk remember recall differ happen describe explain know ever new news plan event anything something everything'
    .split(' ')
    .flatMap(word => termsOf(word)),
)
const genericWordWeight = 0.3

const numberWords =
  /\bhow (?:many|much|old|long|far|high|big|often|tall|heavy|large|fast|expensive|deep|wide)\b|\b(?:what|which) (?:price|sum|amount|age|size|rate|number|revenue|percent\w*|share)\b|\b(?:cost|number of|wie ?viele?|cuánt[oa]s?|combien|quant[oiea]s?|сколько|kaç)\b|多少|几|いくら|いくつ|何[人本枚回個]|몇|얼마|كم /iu
const timeWords =
  /\bwhen\b|\b(?:what|which) (?:date|day|month|year|time|hours?|week)\b|\bhow long ago\b|\b(?:birthday|deadline|wann|cuándo|quand|quando|когда|ne zaman)\b|什么时候|何时|几点|いつ|何時|언제|متى/iu
const assistantWords =
  /\byou(?:r|'ve|'d)?\b|\b(?:previous|earlier|last|past|our) (?:conversation|chat|discussion|session)s?\b|\b(?:assistant|chatbot)\b/i
const userWords = /\b(?:i|me|my|mine|myself|we|our|us|i'm|i've|i'd)\b/i
const latestWords =
  /\b(?:latest|newest|current(?:ly)?|now|nowadays|these days|at the moment|most recent(?:ly)?|still|so far|by now|as of)\b/i
const firstWords = /\b(?:first|earliest|originally|initially|at the beginning|used to)\b/i

/** Characters of a query that are read; the rest is ignored. */
export const queryLengthMax = 16_000

/** Parses a query; a text that asks nothing yields its terms only. Never throws. */
export function parseSearchQuery(query: string, now: number): ParsedQuery {
  const text = query.slice(0, queryLengthMax)
  const normalized = text.replaceAll('’', "'")
  const terms = extractQueryTerms(text)
  const { spans, rest } = parseTimeExpressions(normalized, now)
  return {
    terms,
    times: spans,
    nonTimeTerms: (rest === text ? terms : extractQueryTerms(rest))
      .map(({ term }) => term)
      .filter(term => !genericQueryWords.has(term)),
    role: assistantWords.test(normalized)
      ? 'assistant'
      : userWords.test(normalized)
        ? 'user'
        : undefined,
    wantsNumber: numberWords.test(normalized),
    wantsTime: timeWords.test(normalized),
    order: latestWords.test(normalized)
      ? 'latest'
      : firstWords.test(normalized)
        ? 'first'
        : undefined,
    labels: askedLabels(text),
  }
}

/** Of a sentence that does not ask: its terms alone. */
export const parseStatement = (text: string): ParsedQuery => {
  const terms = extractQueryTerms(text.slice(0, queryLengthMax))
  return {
    terms,
    times: [],
    nonTimeTerms: terms.map(({ term }) => term),
    role: undefined,
    wantsNumber: false,
    wantsTime: false,
    order: undefined,
    labels: undefined,
  }
}

function extractQueryTerms(text: string): QueryTerm[] {
  const terms = new Set(termsOf(text))
  return Array.from(terms, term => ({ term, weight: queryTermWeight(term) })).filter(
    ({ term }) => !isMarkerTerm(term),
  )
}

/** Common words weigh a little more in a query than in a text, as every word was chosen. */
function queryTermWeight(term: string): number {
  if (isFunctionTerm(term)) return functionTermWeight
  return termWeight(term) ** 0.75 * (genericQueryWords.has(term) ? genericWordWeight : 1)
}
