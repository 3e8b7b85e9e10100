import type { Role } from '#shared/domain/memory.ts'
import type { Span } from '#shared/search/query/calendar.ts'
import { timesNamedIn } from '#shared/search/query/named-times.ts'
import { weightOf } from '#shared/search/words/term-weights.ts'
import { isMark, termsOf } from '#shared/search/words/words.ts'

export type AskedTerm = { term: string; /** 0 to 1. */ weight: number }

/** What a question says about its answer. */
export type Reading = {
  /** What it is about, each term once. */
  terms: AskedTerm[]
  /** The times it names, as event times. */
  times: Span[]
  /** Terms that say more than when: none in "what happened last week". */
  besideTimes: string[]
  /** Whose turns are asked for: "what did I say", "what did you recommend". */
  role: Role | undefined
  /** It asks how many, how much, how old. */
  wantsNumber: boolean
  /** It asks when. */
  wantsTime: boolean
  /** It asks for the state of now, or for how things began. */
  order: 'latest' | 'first' | undefined
}

/** Words of asking itself: they are in most questions and in few answers. */
const askingWords: ReadonlySet<string> = new Set(
  'kind type sort name number many much thing mention tell say remind recommend suggest advise list give show previous conversation chat discuss talk remember recall differ happen describe explain know ever new news plan event anything something everything'
    .split(' ')
    .flatMap(word => termsOf(word)),
)
const askingWeight = 0.3

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

/** Whoever asks with a whole book means its beginning. */
const charactersMax = 16_000

/** Reads a question; a text that asks nothing yields its terms alone. Never throws. */
export function readQuestion(question: string, now: number): Reading {
  const text = question.slice(0, charactersMax)
  const asked = text.replaceAll('’', "'")
  const terms = askedTerms(text)
  const { spans, rest } = timesNamedIn(asked, now)
  return {
    terms,
    times: spans,
    besideTimes: askedTerms(rest)
      .map(({ term }) => term)
      .filter(term => !askingWords.has(term)),
    role: assistantWords.test(asked) ? 'assistant' : userWords.test(asked) ? 'user' : undefined,
    wantsNumber: numberWords.test(asked),
    wantsTime: timeWords.test(asked),
    order: latestWords.test(asked) ? 'latest' : firstWords.test(asked) ? 'first' : undefined,
  }
}

function askedTerms(text: string): AskedTerm[] {
  const terms = new Set(termsOf(text))
  return Array.from(terms, term => ({ term, weight: askedWeight(term) })).filter(
    ({ term }) => !isMark(term),
  )
}

/** Commonness counts a little less in a question, where every word was chosen. */
function askedWeight(term: string): number {
  return weightOf(term) ** 0.75 * (askingWords.has(term) ? askingWeight : 1)
}
