import { statesPreference, type QuestionKind } from '#shared/search/query/question-kinds.ts'
import { isAsking } from '#shared/search/query/asking-words.ts'
import { isSmallTalk } from '#shared/search/query/small-talk.ts'
import { isImpersonalTask } from '#shared/search/query/task-words.ts'
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

/** What is known of a person: reflections, the most important ones first, then the newest statements. */
export function rowsOfPerson(ranges: readonly SearchRange[]): ScoredRow[] {
  const reflections = ranges.filter(({ tier }) => tier > 1).flatMap(allowedRows)
  reflections.sort(
    (one, other) =>
      (other.range.tierIndex.importance(other.row) ?? 0) -
        (one.range.tierIndex.importance(one.row) ?? 0) || other.at - one.at,
  )
  const statements = ranges.filter(({ tier }) => tier === 1).flatMap(newestStatements)
  statements.sort((one, other) => other.at - one.at)
  const chosen = [...reflections.slice(0, reflectionsMax), ...statements.slice(0, statementsMax)]
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

/** The newest rows of a range that are allowed. */
function allowedRows(range: SearchRange): ScoredRow[] {
  const rows: ScoredRow[] = []
  const first = Math.max(range.first, range.end - statementsReadMax)
  for (let row = range.end - 1; row >= first; row--)
    if (range.allows(row)) rows.push(toRow(range, row))
  return rows
}

function newestStatements(range: SearchRange): ScoredRow[] {
  const found: ScoredRow[] = []
  for (const row of allowedRows(range)) {
    if (found.length >= statementsMax) break
    if (isStatement(range, row.row)) found.push(row)
  }
  return found
}

/** A person's own words, long enough to tell something, that neither ask nor give a task. */
function isStatement({ tierIndex }: SearchRange, row: number): boolean {
  if (tierIndex.isFact(row) || tierIndex.role(row) !== 'user' || tierIndex.tokens(row) < 4)
    return false
  const { text } = tierIndex.memory(row)
  return !isAsking(text) && !isSmallTalk(text) && !isImpersonalTask(text)
}
