import type { Role } from '#shared/domain/memory.ts'
import type { TimeSpan } from '#shared/search/query/calendar.ts'
import { askedLabels } from '#shared/search/query/attributes.ts'
import { patternOf, wordsOf } from '#shared/search/languages/languages.ts'
import { parseTimeExpressions } from '#shared/search/query/parse-time-expressions.ts'
import { termWeight } from '#shared/search/words/term-weights.ts'
import { functionTermWeight, isFunctionTerm } from '#shared/search/words/stop-words.ts'
import { isMarkerTerm, termsOf } from '#shared/search/words/index-terms.ts'
import { foldText } from '#shared/search/words/writing-systems.ts'
import { tuned } from '#shared/search/tuned.ts'

export type QueryTerm = { term: string; /** 0 to 1. */ weight: number }

/** The terms of a query, and hints about the answer. */
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
  /** Labels of the notes that answer it; undefined when it asks for no attribute of a person. */
  labels: ReadonlySet<string> | undefined
}

/** Words that are in most questions and in few answers. */
const genericQueryWords: ReadonlySet<string> = new Set(
  wordsOf('genericWords').flatMap(word => termsOf(word)),
)
const { genericWordWeight } = tuned.terms

const asksNumber = patternOf('asksNumber')
const asksTime = patternOf('asksTime')
const asksAssistant = patternOf('asksAssistant')
const asksUser = patternOf('asksUser')
const asksLatest = patternOf('asksLatest')
const asksFirst = patternOf('asksFirst')

/** Characters of a query that are read; the rest is ignored. */
export const queryLengthMax = 16_000

/** Parses a query. Never throws. */
export function parseSearchQuery(query: string, now: number): ParsedQuery {
  const text = query.slice(0, queryLengthMax)
  const normalized = text.replaceAll('’', "'")
  const terms = extractQueryTerms(text)
  const { spans, rest } = parseTimeExpressions(normalized, now)
  const folded = foldText(normalized)
  return {
    terms,
    times: spans,
    nonTimeTerms: (rest === text ? terms : extractQueryTerms(rest))
      .map(({ term }) => term)
      .filter(term => !genericQueryWords.has(term)),
    role: asksAssistant.test(folded) ? 'assistant' : asksUser.test(folded) ? 'user' : undefined,
    wantsNumber: asksNumber.test(folded),
    wantsTime: asksTime.test(folded),
    order: asksLatest.test(folded) ? 'latest' : asksFirst.test(folded) ? 'first' : undefined,
    labels: askedLabels(text),
  }
}

/** Parses a sentence that does not ask: into its terms alone. */
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
  const terms: QueryTerm[] = []
  for (const term of new Set(termsOf(text)))
    if (!isMarkerTerm(term)) terms.push({ term, weight: queryTermWeight(term) })
  return terms
}

/** Weights of terms of queries, nearly all of which repeat. */
const weightCache = new Map<string, number>()
const weightCacheMax = 20_000

/** Common words weigh a little more in a query than in a text: every word was chosen. */
function queryTermWeight(term: string): number {
  const known = weightCache.get(term)
  if (known !== undefined) return known
  const weight = isFunctionTerm(term)
    ? functionTermWeight
    : termWeight(term) ** 0.75 * (genericQueryWords.has(term) ? genericWordWeight : 1)
  if (weightCache.size >= weightCacheMax) weightCache.clear()
  weightCache.set(term, weight)
  return weight
}
