import { runAtOnce, type Steps } from '#shared/core/event-loop.ts'
import { analyzeWord, type WordAnalysis } from '#shared/search/words/analyze-word.ts'

/** Prefix of speaker terms: a text that begins with `Caroline:` or `[Caroline]` has the term `@carolin`. */
export const speakerMarker = '@'

/** Term of texts that end with a question mark. */
export const questionMarker = '?'

/** Term of texts that contain a number. */
export const numberMarker = '#'

/** Term of texts that contain a time. */
export const timeMarker = '%'

/** Marker terms describe a text; they are not words of it. */
export function isMarkerTerm(term: string): boolean {
  return (
    term === questionMarker ||
    term === numberMarker ||
    term === timeMarker ||
    term.startsWith(speakerMarker)
  )
}

/** Analyses of runs of characters, nearly all of which repeat. About 10 MB when full. */
const analysisCache = new Map<string, WordAnalysis>()
const analysisCacheMax = 50_000
/** Characters beyond which a run hardly repeats: a sentence without spaces, or machine output. */
const cachedLengthMax = 32
/** Characters beyond which a run is analyzed in parts: some patterns take quadratic time. */
const runLengthMax = 1_000

/** Characters of a step: about 1 ms for new words. */
const stepLength = 1_000

/**
 * Returns the index terms of a text or query in any script, with repetitions: stems of English words without stop words,
 * numbers as digits, identifiers, addresses and versions whole and in parts, pairs of characters where a script has no
 * spaces, and marker terms. Invisible characters do not count; a word with joiners has the terms of its parts and of the
 * whole. The speaker prefix of a turn yields a marker only: as a word it would match all turns of a speaker. Never throws.
 */
export function termsOf(text: string): string[] {
  const terms = runAtOnce(partTermsInSteps(text))
  for (const word of joinedWords(text)) {
    for (const term of analyzeCached(word.slice(0, runLengthMax)).terms) terms.push(term)
  }
  return terms
}

/**
 * Returns the same terms in steps of some milliseconds, but of a word with joiners those of its parts alone: vectors of the
 * built-in embedder are made of these.
 */
export function* partTermsInSteps(given: string): Steps<string[]> {
  const text = withoutInvisible(given)
  const terms: string[] = []
  const prefix = parseSpeakerPrefix(text)
  let roots: string[] | undefined
  let foreign = 0
  let start = prefix?.length ?? 0
  let stepEnd = start + stepLength
  for (let i = start; i <= text.length; i++) {
    const isEnd = i === text.length || isSpace(text.charCodeAt(i))
    if (!isEnd && i - start < runLengthMax) continue
    if (i > start) {
      const run = analyzeCached(text.slice(start, i))
      for (const term of run.terms) terms.push(term)
      if (run.terms.length === 0 && terms.length > 0 && isMonthOfMay(text, start, i))
        terms.push('may')
      if (run.foreignRoots.length > 0) (roots ??= []).push(...run.foreignRoots)
      foreign += run.foreignScore
    }
    start = isEnd ? i + 1 : i
    if (start > stepEnd) {
      yield
      stepEnd = start + stepLength
    }
  }
  if (roots && foreign > 0) for (const root of roots) terms.push(root)
  for (const name of prefix?.names ?? []) {
    for (const term of analyzeCached(name).terms) terms.push(speakerMarker + term)
  }
  if (/[?？؟][\p{P}\s]{0,3}$/u.test(text.slice(-4))) terms.push(questionMarker)
  if (numberPattern.test(text)) terms.push(numberMarker)
  if (timePattern.test(text)) terms.push(timeMarker)
  return terms
}

/** Whether a word is "May" with a capital inside a sentence, and not the auxiliary verb, a stop word. */
const isMonthOfMay = (text: string, start: number, end: number): boolean =>
  end - start <= 4 && /^May[.,?!]?$/.test(text.slice(start, end))

const numberPattern =
  /\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|once|twice|half|dozen)/i
const timePattern =
  /\b(?:yesterday|today|tonight|tomorrow|(?:last|next|this|past|every) (?:week|weekend|month|year|night|summer|winter|spring|fall|autumn|monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|february|march|april|june|july|august|september|october|november|december)|(?:days?|weeks?|months?|years?) (?:ago|from now|later)|(?:in|since|until|by|on|of|from|for) (?:january|february|march|april|may|june|july|august|september|october|november|december|monday|tuesday|wednesday|thursday|friday|saturday|sunday|\d{4})|\d{1,2}(?:st|nd|rd|th)\b|(?:january|february|march|april|may|june|july|august|september|october|november|december) \d|christmas|easter|halloween|thanksgiving|new year|birthday|anniversary|\d{4}-\d\d-\d\d|\d{1,2}:\d\d|(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)s?)\b/i

const speakerPrefixPattern = /^\s*(?:\[([^\]\n:]{1,40})\]:?|(\p{L}[^\n:[\]]{0,39}):)\s/u

/**
 * Parses the speaker prefix of a text as in chat logs, `Caroline: …` or `[Caroline] …`: up to three words, each with a
 * capital where the script has them. `length` is that of the prefix.
 */
export function parseSpeakerPrefix(text: string): { names: string[]; length: number } | undefined {
  if (!text.includes(':') && !text.includes('[')) return undefined
  const match = speakerPrefixPattern.exec(text)
  const names = (match?.[1] ?? match?.[2])?.split(' ')
  if (!match || !names || names.length > 3) return undefined
  if (!names.every(name => /^[\p{Lu}\p{Lo}]/u.test(name))) return undefined
  return { names, length: match[0].length }
}

function analyzeCached(characters: string): WordAnalysis {
  const hit = analysisCache.get(characters)
  if (hit) return hit
  const run = analyzeWord(characters)
  if (characters.length <= cachedLengthMax) {
    if (analysisCache.size >= analysisCacheMax) analysisCache.clear()
    analysisCache.set(characters, run)
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

/** Zero-width joiner and non-joiner: Persian and the scripts of India spell words with them. */
const joiners = /[\u200c\u200d]+/g

/** It begins where a run of letters begins: from each letter the search would be quadratic. */
const joinedWord =
  /(?<![\p{L}\p{M}\p{N}])[\p{L}\p{M}\p{N}]+(?:[\u200c\u200d]+[\p{L}\p{M}\p{N}]+)+/gu

/** The words of a text that are spelled with joiners, without these, as many people write them. */
const joinedWords = (text: string): string[] =>
  text.includes('\u200c') || text.includes('\u200d')
    ? (text.match(joinedWord) ?? []).map(word => word.replaceAll(joiners, ''))
    : []

/**
 * Invisible characters (Unicode property Default_Ignorable_Code_Point) that no spelling needs: soft hyphens, zero-width
 * spaces, marks of direction. Not joiners, the zero-width spaces between words of scripts without spaces, and variation
 * selectors of emoji, which follow no letter. Of 31,698 lines in many scripts none gets another local vector by it.
 */
const strayInvisible =
  /(?![\u200c\u200d]|\u200b(?<=[\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}\p{sc=Tibt}]\u200b)|[\ufe00-\ufe0f](?<!\p{L}[\ufe00-\ufe0f]))\p{DI}/gu

/** Tested first, at a tenth of the cost. */
const anyInvisible = /\p{DI}/u

/** Removes stray invisible characters, which words copied from pages and documents have inside. */
const withoutInvisible = (text: string): string =>
  anyInvisible.test(text) ? text.replaceAll(strayInvisible, '') : text
