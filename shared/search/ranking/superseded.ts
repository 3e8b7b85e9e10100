import { createLruCache } from '#shared/core/lru-cache.ts'
import { buildProfile, type SourcedStatement } from '#shared/search/profile/build-profile.ts'
import { statementsAndNotes, type Statement } from '#shared/search/profile/find-statements.ts'
import { alternativesOf, patternOf, wordsOf } from '#shared/search/languages/languages.ts'
import { isPersonal } from '#shared/search/query/sentence-kinds.ts'
import type { ParsedQuery } from '#shared/search/query/parse-query.ts'
import { isFunctionTerm } from '#shared/search/words/stop-words.ts'
import type { FusedRow } from '#shared/search/ranking/fusion.ts'
import { isContext, scoreOf } from '#shared/search/ranking/signals.ts'
import { textTests } from '#shared/search/ranking/text-tests.ts'
import { isMarkerTerm, termsOf } from '#shared/search/words/index-terms.ts'
import { foldText } from '#shared/search/words/writing-systems.ts'

/** Best rows that are compared: statements with each other, and claims with what a person said. */
const comparedMax = 16
/** Longer texts say more than one thing. */
const tokensMax = 80
/** Words in which two statements about the same may differ, in one run; and words before these. */
const runMax = 8
const wordsBeforeMin = 2
const subjectPronouns: ReadonlySet<string> = new Set(wordsOf('subjectPronouns').map(foldText))
const article = new RegExp(`^(?:${alternativesOf('articles')})$`, 'u')
/** Words that say that something ended ("no longer", "quit"): the older text need not have them. */
const endingTerms: ReadonlySet<string> = new Set(wordsOf('endingWords').flatMap(termsOf))

const asksPast = patternOf('asksPast')

/**
 * Marks what is superseded among the best rows. The newest of statements about one thing takes the place of the best of
 * them, or the oldest where the question asks what was before. A question that names a time is answered by that time.
 *
 * @param text of the question
 */
export function markSuperseded(
  bestRows: readonly FusedRow[],
  text: string,
  parsedQuery: ParsedQuery,
  { floor }: { floor: boolean },
): readonly FusedRow[] {
  const rows = putPersonAboveClaims(bestRows, text, parsedQuery)
  const isAsked: IsAsked = term => parsedQuery.terms.some(one => one.term === term)
  const superseded = findSuperseded(rows, isAsked)
  if (superseded.size === 0) return rows
  const { times, order } = parsedQuery
  const marked = rows.map((row, position) => {
    const newest = rows[superseded.get(position)!]
    return newest ? { ...row, newest } : row
  })
  const sorted = [...marked]
  if (times.length > 0) return sorted
  const isPast = order === 'first' || asksPast.test(foldText(text))
  const groups = Map.groupBy(superseded, ([, newest]) => newest)
  for (const [newest, older] of groups) {
    // The group keeps its places. They are filled by time, and each place keeps the relevance and score that it had.
    const places = [newest, ...older.map(([position]) => position)].sort((a, b) => a - b)
    // A text that is the query itself stays first.
    if (places.some(place => rows[place]!.relevance === Infinity)) continue
    const byTime = places.toSorted((a, b) => (isPast ? 1 : -1) * (rows[a]!.at - rows[b]!.at))
    // Blocks are chosen in the order of relevance, searches are in that of the score.
    const byScore = (a: number, b: number): number => scoreOf(rows[b]!) - scoreOf(rows[a]!)
    const valuePlaces = floor ? places : places.toSorted(byScore)
    for (const [i, place] of places.entries()) {
      const { relevance, ownShare } = rows[valuePlaces[i]!]!
      sorted[place] = { ...marked[byTime[i]!]!, relevance, ownShare }
    }
  }
  return sorted
}

/**
 * Puts what a person said above what a model or a program claims: where a claim stands above a row of a person that
 * has its words of the question too, the two exchange places and scores. The answers of models are claims where the
 * question is about the person and not about what the model said.
 */
function putPersonAboveClaims(rows: readonly FusedRow[], text: string, parsedQuery: ParsedQuery) {
  const isAboutPerson = isPersonal(text)
  const isClaim = ({ range: { tierIndex }, row }: FusedRow): boolean =>
    tierIndex.isSaidByProgram(row) ||
    (isAboutPerson &&
      tierIndex.role(row) === 'assistant' &&
      tierIndex.speaker(row) === undefined &&
      parsedQuery.role !== 'assistant')
  const isOfPerson = (row: FusedRow): boolean =>
    !isClaim(row) && isComparable(row) && row.relevance !== Infinity
  const questionWordsByRow = new Map<FusedRow['scored'], Set<string>>()
  const questionWordsOf = ({ range, row, scored }: FusedRow): Set<string> => {
    const knownWords = questionWordsByRow.get(scored)
    if (knownWords) return knownWords
    const terms = new Set(termsOf(range.tierIndex.text(row)))
    const words = new Set(parsedQuery.terms.flatMap(({ term }) => (terms.has(term) ? [term] : [])))
    questionWordsByRow.set(scored, words)
    return words
  }
  const sorted = [...rows]
  for (let place = 0; place < Math.min(comparedMax, rows.length); place++) {
    const claim = sorted[place]!
    if (!isClaim(claim) || isContext(claim.scored.signals) || claim.relevance === Infinity) continue
    const words = questionWordsOf(claim)
    const below = sorted.findIndex(
      (row, at) =>
        at > place && at < comparedMax && isOfPerson(row) && words.isSubsetOf(questionWordsOf(row)),
    )
    if (words.size === 0 || below < 0) continue
    const personRow = sorted[below]!
    sorted[place] = { ...personRow, relevance: claim.relevance, ownShare: claim.ownShare }
    sorted[below] = { ...claim, relevance: personRow.relevance, ownShare: personRow.ownShare }
  }
  return sorted
}

/** Whether a question has a term. */
type IsAsked = (term: string) => boolean

type Compared = {
  position: number
  at: number
  text: string
  /** The first word of the text, folded. */
  opening: string | undefined
  /** All of them, once they were read. */
  words?: readonly string[]
  /** Whose words they are; only the same person's replace what is said of that person. */
  speaker: string
  /** What a model or a program wrote supersedes nothing that a person said. */
  isProgram: boolean
  statements: readonly Statement[]
  /** Whether it says that something holds no longer. */
  isEnding: boolean
}

/**
 * Finds, among the best rows of a question, statements about one thing of which a later one has another value: by the
 * kinds and subjects of a profile ("I live in Berlin", "I moved to Lisbon"), and by their shape: two texts with the same
 * words of the question that differ in one run. None supersedes one
 * - of the same time, or of a person where it is a program's;
 * - by their shape: with a run of over eight words, or with more words in common behind the run than before it.
 *
 * @returns the positions of superseded rows, each with the position of the newest
 */
function findSuperseded(rows: readonly FusedRow[], isAsked: IsAsked): ReadonlyMap<number, number> {
  const compared = rows
    .slice(0, comparedMax)
    .flatMap((row, position) => (isComparable(row) ? readRow(row, position) : []))
  const superseded = new Map<number, number>()
  if (compared.length < 2) return superseded
  compared.sort((one, other) => other.at - one.at)
  const replacedBy = replacedByProfile(compared)
  for (const [i, newer] of compared.entries()) {
    for (const older of compared.slice(i + 1)) {
      if (older.at === newer.at || superseded.has(older.position)) continue
      if (newer.isProgram && !older.isProgram) continue
      if (
        replacedBy.get(older.position) === newer.position ||
        haveOneShape(newer, older, isAsked) ||
        endsOlder(newer, older)
      )
        superseded.set(older.position, superseded.get(newer.position) ?? newer.position)
    }
  }
  return superseded
}

/** Whether a row says something by itself, shortly, and of a person or as a fact. */
function isComparable({ range: { tierIndex }, row, scored }: FusedRow): boolean {
  if (isContext(scored.signals) || tierIndex.tokens(row) > tokensMax) return false
  if (tierIndex.role(row) !== 'user' && !tierIndex.isFact(row)) return false
  return !tierIndex.passes(row, textTests.isAsking)
}

function readRow({ range: { tierIndex }, row, at }: FusedRow, position: number): Compared {
  const text = tierIndex.text(row)
  return {
    position,
    at,
    text,
    opening: firstWordOf(text),
    speaker: tierIndex.speaker(row) ?? tierIndex.author(row) ?? '',
    isProgram: tierIndex.isSaidByProgram(row),
    statements: tierIndex.passes(row, textTests.statesLasting) ? statementsOf(text) : [],
    isEnding: tierIndex.passes(row, textTests.endsStatement),
  }
}

/** Words, and characters of scripts without spaces. */
const wordPattern =
  /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}]|[^\P{L}\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}][\p{L}\p{M}\p{N}'’-]*|\p{N}+/gu
const wordsIn = (text: string): string[] => foldText(text).match(wordPattern) ?? []

/** Characters that are read for the first word. */
const openingLength = 48

/** The first of `wordsIn`: most texts begin differently, and are then not read to their end. */
function firstWordOf(text: string): string | undefined {
  const folded = foldText(text.slice(0, openingLength))
  const [word] = folded.match(wordPattern) ?? []
  // A word that ends with what was read may go on.
  return word === undefined || folded.endsWith(word) ? wordsIn(text)[0] : word
}

/**
 * Whether two texts differ in one run and have the same words of the question. "My gym is on Elm Street", "My gym is on
 * Oak Avenue": four words before, the runs "elm street" and "oak avenue", none after.
 */
function haveOneShape(newer: Compared, older: Compared, isAsked: IsAsked): boolean {
  const { opening } = newer
  if (opening === undefined || opening !== older.opening || subjectPronouns.has(opening))
    return false
  const newerWords = (newer.words ??= wordsIn(newer.text))
  const olderWords = (older.words ??= wordsIn(older.text))
  const isSame = (at: number): boolean => newerWords.at(at) === olderWords.at(at)
  const shorterLength = Math.min(newerWords.length, olderWords.length)
  let headLength = 0
  while (headLength < shorterLength && isSame(headLength)) headLength++
  const isNote = /^[^:：]{1,30}[:：]/.test(newer.text)
  if (headLength < (isNote ? 1 : wordsBeforeMin)) return false
  let tailLength = 0
  while (tailLength < shorterLength - headLength && isSame(-1 - tailLength)) tailLength++
  // More words behind the run than before it: it is whom they are about ("My friend Tom plays the cello").
  if (tailLength > headLength) return false
  const runOf = (words: readonly string[]) => words.slice(headLength, words.length - tailLength)
  const [newerRun, olderRun] = [runOf(newerWords), runOf(olderWords)]
  const lengths = [newerRun.length, olderRun.length]
  if (Math.min(...lengths) < 1 || Math.max(...lengths) > runMax) return false
  const askedTermsIn = (words: readonly string[]) => termsOf(words.join(' ')).filter(isAsked)
  // Words that both runs have divide two differences: "staging is 5544", "production is 5545".
  if (newerRun.some(word => olderRun.includes(word) && !article.test(word))) return false
  const terms = askedTermsIn(newerWords.toSpliced(headLength, newerRun.length))
  if (terms.length === 0) return false
  if (askedTermsIn([...newerRun, ...olderRun]).some(term => !terms.includes(term))) return false
  return newer.speaker === older.speaker || !isPersonal(newer.text)
}

/** Whether a text says with the words of an older one that it holds no longer: "I no longer eat meat". */
function endsOlder(newer: Compared, older: Compared): boolean {
  if (!newer.isEnding || older.isEnding || newer.speaker !== older.speaker) return false
  const terms = termsOf(foldText(newer.text)).filter(
    term =>
      !isMarkerTerm(term) && !isFunctionTerm(term) && !endingTerms.has(term) && !term.endsWith('*'),
  )
  const olderTerms = new Set(termsOf(older.text))
  return terms.length > 0 && terms.every(term => olderTerms.has(term))
}

/** The positions of statements that a profile of the rows has replaced, each with the position of the one that did. */
function replacedByProfile(rows: readonly Compared[]): Map<number, number> {
  const replaced = new Map<number, number>()
  if (rows.filter(({ statements }) => statements.length > 0).length < 2) return replaced
  const sourced = rows.flatMap(({ position: row, at, speaker, statements }) =>
    statements.map((statement, position): SourcedStatement => {
      return { ...statement, memory: String(row), at, position, speaker }
    }),
  )
  for (const { memory, replacedBy } of buildProfile(sourced))
    if (replacedBy !== null && replacedBy !== memory)
      replaced.set(Number(memory), Number(replacedBy))
  return replaced
}

/** Facts of texts that state something: searches compare the same ones again and again. Some 10 MB when full. */
const statementsByText = createLruCache<readonly Statement[]>(5_000)

function statementsOf(text: string): readonly Statement[] {
  const statements = statementsByText.get(text) ?? statementsAndNotes(text)
  statementsByText.set(text, statements)
  return statements
}
