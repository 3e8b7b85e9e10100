import { readRun, type Run } from '#shared/search/words/tokenize.ts'

/** Said by: a text that opens with `Caroline:` or `[Caroline]` has the term `@carolin`. */
export const saidBy = '@'

/** A text that ends as a question has this term. */
export const asks = '?'

/** A text that names a number has this term. */
export const counts = '#'

/** A text that names a time has this term. */
export const dates = '%'

/** Marks say what a text is like; they are no words of it. */
export function isMark(term: string): boolean {
  return term === asks || term === counts || term === dates || term.startsWith(saidBy)
}

/** Language repeats itself, so nearly all runs were read before. About 10 MB when full. */
const known = new Map<string, Run>()
const knownMax = 50_000
/** Longer runs are sentences of scripts without spaces or machine noise, and hardly ever return. */
const knownLengthMax = 32
/** What has no white space for so long is read in parts: some of its patterns take quadratic time. */
const runLengthMax = 1_000

/**
 * Index terms of a text in any script, with repetitions: stems of English words without stop
 * words, numbers as digits, identifiers, addresses and versions whole and in parts, pairs of
 * characters where a script has no spaces, and the marks `saidBy` and `asks`. Texts and questions
 * go through the same function, so what is spelt alike meets. Never throws.
 *
 * The name a turn opens with is a mark only: as a word it would make all turns of a speaker alike.
 */
export function termsOf(text: string): string[] {
  const terms: string[] = []
  const opening = openingOf(text)
  let roots: string[] | undefined
  let foreign = 0
  let start = opening?.length ?? 0
  for (let i = start; i <= text.length; i++) {
    const isEnd = i === text.length || isSpace(text.charCodeAt(i))
    if (!isEnd && i - start < runLengthMax) continue
    if (i > start) {
      const run = runOf(text.slice(start, i))
      for (const term of run.terms) terms.push(term)
      if (run.roots.length > 0) (roots ??= []).push(...run.roots)
      foreign += run.foreign
    }
    start = isEnd ? i + 1 : i
  }
  if (roots && foreign > 0) for (const root of roots) terms.push(root)
  for (const name of opening?.names ?? []) {
    for (const term of runOf(name).terms) terms.push(saidBy + term)
  }
  if (/[?？؟][\p{P}\s]*$/u.test(text.slice(-4))) terms.push(asks)
  if (numbers.test(text)) terms.push(counts)
  if (times.test(text)) terms.push(dates)
  return terms
}

const numbers =
  /\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|once|twice|half|dozen)/i
const times =
  /\b(?:yesterday|today|tonight|tomorrow|(?:last|next|this|past|every) (?:week|weekend|month|year|night|summer|winter|spring|fall|autumn|monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|april|june|july|august|september|october|november|december)|(?:days?|weeks?|months?|years?) (?:ago|from now|later)|(?:in|since|until|by|on|of|from|for) (?:january|february|march|april|may|june|july|august|september|october|november|december|monday|tuesday|wednesday|thursday|friday|saturday|sunday|\d{4})|\d{1,2}(?:st|nd|rd|th)\b|(?:january|february|march|april|may|june|july|august|september|october|november|december) \d|christmas|easter|halloween|thanksgiving|new year|birthday|anniversary|\d{4}-\d\d-\d\d|\d{1,2}:\d\d|(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)s?)\b/i

const openings = /^\s*(?:\[([^\]\n:]{1,40})\]:?|(\p{L}[^\n:[\]]{0,39}):)\s/u

/**
 * The name a text opens with as chat logs write it, `Caroline: …` or `[Caroline] …`: up to three
 * words, each with a capital where the script has them. `length` is where the rest begins.
 */
export function openingOf(text: string): { names: string[]; length: number } | undefined {
  const match = openings.exec(text)
  const names = (match?.[1] ?? match?.[2])?.split(' ')
  if (!match || !names || names.length > 3) return undefined
  if (!names.every(name => /^[\p{Lu}\p{Lo}]/u.test(name))) return undefined
  return { names, length: match[0].length }
}

function runOf(characters: string): Run {
  const hit = known.get(characters)
  if (hit) return hit
  const run = readRun(characters)
  if (characters.length <= knownLengthMax) {
    if (known.size >= knownMax) known.clear()
    known.set(characters, run)
  }
  return run
}

function isSpace(code: number): boolean {
  if (code <= 32 || code === 0xa0) return true
  return (
    code === 0x3000 ||
    (code >= 0x2000 && code <= 0x200b) ||
    code === 0x2028 ||
    code === 0x2029 ||
    code === 0x202f
  )
}
