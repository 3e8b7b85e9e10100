import type { Steps } from '#shared/core/event-loop.ts'
import { statesPreference, type QuestionKind } from '#shared/search/query/question-kinds.ts'
import { isAsking } from '#shared/search/query/asking-words.ts'
import { isSmallTalk } from '#shared/search/query/small-talk.ts'
import { nameLabels } from '#shared/search/query/attributes/attributes.ts'
import { isImpersonalTask, isPersonal, isProfileNote } from '#shared/search/query/task-words.ts'
import { findAttributeRows } from '#shared/search/ranking/attribute-rows.ts'
import type { ScoredRow } from '#shared/search/ranking/score-candidates.ts'
import type { SearchRange } from '#shared/search/ranking/search-range.ts'
import type { Signals } from '#shared/search/ranking/fuse-signals.ts'

/** How the rows of a kind of question are chosen beside their relevance. */
type Way = {
  /** Reflections and the newest statements instead of what is similar. */
  isAboutPerson?: boolean
  /** Every further row of one day is worth this much less, so that many days are told of. */
  sameDayFactor?: number
  /** How much more a row is worth that states a preference. */
  preferenceFactor?: number
}

const ways: Record<QuestionKind, Way> = {
  self: { isAboutPerson: true },
  everything: { sameDayFactor: 0.7 },
  count: { sameDayFactor: 0.5 },
  order: { sameDayFactor: 0.6 },
  preference: { preferenceFactor: 1.6 },
}

const wayOf = (kind: QuestionKind | undefined): Way => (kind ? ways[kind] : {})

export const isAboutPerson = (kind: QuestionKind | undefined): boolean =>
  wayOf(kind).isAboutPerson === true

const DAY_MS = 86_400_000

/** Ranks rows again as the kind of the question wants it; best first. */
export function rankByKind<Row extends ScoredRow>(
  ranked: readonly Row[],
  kind: QuestionKind | undefined,
): Row[] {
  const { sameDayFactor = 1, preferenceFactor = 1 } = wayOf(kind)
  if (sameDayFactor === 1 && preferenceFactor === 1) return [...ranked]
  const rowsOfDay = new Map<number, number>()
  const weighted = ranked.map(row => {
    const day = Math.floor(row.at / DAY_MS)
    const before = rowsOfDay.get(day) ?? 0
    rowsOfDay.set(day, before + 1)
    const factor = preferenceFactor > 1 && isPreference(row) ? preferenceFactor : 1
    return { ...row, relevance: row.relevance * factor * sameDayFactor ** before }
  })
  return weighted.sort((one, other) => other.relevance - one.relevance || other.at - one.at)
}

const isPreference = ({ range: { tierIndex }, row }: ScoredRow): boolean =>
  (tierIndex.role(row) === 'user' || tierIndex.isFact(row)) &&
  statesPreference(tierIndex.memory(row).text)

/** Rows that are looked at for statements, from the newest on, and those that are told. */
const statementsReadMax = 400
const statementsMax = 16
const reflectionsMax = 12
const namesMax = 4

/**
 * What is known of a person: their name, whenever it was told, reflections, the most important ones first, then
 * the newest statements. In short steps, the rows must not change before the last.
 *
 * @param isIdentity "who am I": where the name is known, statements that tell of no person are left out
 */
export function* rowsOfPerson(
  ranges: readonly SearchRange[],
  { isIdentity }: { isIdentity: boolean },
): Steps<ScoredRow[]> {
  const names: ScoredRow[] = []
  for (const range of ranges)
    for (const row of yield* findAttributeRows(range, nameLabels)) names.push(toNameRow(range, row))
  yield
  names.sort((one, other) => other.at - one.at)
  const reflections = ranges.filter(({ tier }) => tier > 1).flatMap(allowedRows)
  reflections.sort(
    (one, other) =>
      (other.range.tierIndex.importance(other.row) ?? 0) -
        (one.range.tierIndex.importance(one.row) ?? 0) || other.at - one.at,
  )
  const isWanted = isIdentity && names.length > 0 ? tellsOfPerson : () => true
  const statements = ranges
    .filter(({ tier }) => tier === 1)
    .flatMap(range => newestStatements(range, isWanted))
  statements.sort((one, other) => other.at - one.at)
  const chosen = [
    ...names.slice(0, namesMax),
    ...reflections.slice(0, reflectionsMax),
    ...statements.slice(0, statementsMax),
  ]
  return chosen.map((row, i) => ({ ...row, relevance: 1 - i / (2 * chosen.length) }))
}

/** They are found by their time. */
const signals: Signals = {
  similarity: 0,
  words: 0,
  context: 0,
  time: 1,
  speakerMatch: 0,
  answerType: 0,
  recency: 0,
  question: 0,
  informativeness: 1,
}

const toRow = (range: SearchRange, row: number): ScoredRow => ({
  range,
  row,
  at: range.tierIndex.timeAt(row),
  signals: { ...signals },
  relevance: 1,
})

/** The name of the person answers by itself. */
const toNameRow = (range: SearchRange, row: number): ScoredRow => {
  const found = toRow(range, row)
  return { ...found, signals: { ...found.signals, words: 1 }, statesAttribute: true }
}

const tellsOfPerson = ({ range: { tierIndex }, row }: ScoredRow): boolean => {
  const { text } = tierIndex.memory(row)
  return isPersonal(text) || isProfileNote(text)
}

/** The newest rows of a range that are allowed. */
function allowedRows(range: SearchRange): ScoredRow[] {
  const rows: ScoredRow[] = []
  const first = Math.max(range.first, range.end - statementsReadMax)
  for (let row = range.end - 1; row >= first; row--)
    if (range.allows(row)) rows.push(toRow(range, row))
  return rows
}

function newestStatements(range: SearchRange, isWanted: (row: ScoredRow) => boolean): ScoredRow[] {
  const found: ScoredRow[] = []
  for (const row of allowedRows(range)) {
    if (found.length >= statementsMax) break
    if (isStatement(range, row.row) && isWanted(row)) found.push(row)
  }
  return found
}

/** "Not now" tells nothing, "Job: nurse" does. */
const statementTokensMin = 4

/** A person's own words, a note or long enough to tell something, that neither ask nor give a task. */
function isStatement({ tierIndex }: SearchRange, row: number): boolean {
  if (tierIndex.isFact(row) || tierIndex.role(row) !== 'user') return false
  const { text } = tierIndex.memory(row)
  if (tierIndex.tokens(row) < statementTokensMin && !isProfileNote(text)) return false
  return !isAsking(text) && !isSmallTalk(text) && !isImpersonalTask(text)
}
