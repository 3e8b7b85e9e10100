import type { Steps } from '#shared/core/event-loop.ts'
import type { QuestionKind } from '#shared/search/query/sentence-kinds.ts'
import { nameLabels } from '#shared/search/query/attributes.ts'
import { findAttributeRows } from '#shared/search/ranking/candidates.ts'
import type { QuestionRanking } from '#shared/search/ranking/fusion.ts'
import {
  isNotExcluded,
  uniqueTexts,
  type RankingQuery,
  type RowLimits,
  type ScoredRow,
} from '#shared/search/ranking/scores.ts'
import type { SearchRange } from '#shared/search/ranking/ranges.ts'
import { noSignals, type Signals } from '#shared/search/ranking/signals.ts'
import { textTests } from '#shared/search/ranking/text-tests.ts'
import { tuned } from '#shared/search/tuned.ts'

/** Factor of the relevance of every further row of one day, so that rows of many days are found. */
const sameDayFactors: Partial<Record<QuestionKind, number>> = tuned.sameDay

const DAY_MS = 86_400_000

/** Ranks rows again by the kind of the question; best first. */
export function rankByKind<Row extends ScoredRow>(
  ranked: readonly Row[],
  kind: QuestionKind | undefined,
): readonly Row[] {
  const sameDayFactor = (kind && sameDayFactors[kind]) ?? 1
  const wantsPreference = kind === 'preference'
  if (sameDayFactor === 1 && !wantsPreference) return ranked
  const rowsOfDay = new Map<number, number>()
  const weighted = ranked.map(row => {
    const day = Math.floor(row.at / DAY_MS)
    const before = rowsOfDay.get(day) ?? 0
    rowsOfDay.set(day, before + 1)
    const factor = wantsPreference && isPreference(row) ? tuned.preference.stated : 1
    return { ...row, relevance: row.relevance * factor * sameDayFactor ** before }
  })
  return weighted.sort((one, other) => other.relevance - one.relevance || other.at - one.at)
}

const isPreference = ({ range: { tierIndex }, row }: ScoredRow): boolean =>
  (tierIndex.role(row) === 'user' || tierIndex.isFact(row)) &&
  tierIndex.passes(row, textTests.statesPreference)

/**
 * Ranks what is known of the person who asks.
 *
 * @param matches best first; they follow
 */
export function* personRows(
  ranges: readonly SearchRange[],
  search: Pick<RowLimits, 'excludeTexts'>,
  { vector, parsedQuery: { labels } }: RankingQuery,
  matches: readonly ScoredRow[],
): Steps<QuestionRanking> {
  const knownRows = yield* rowsOfPerson(ranges, { isIdentity: labels !== undefined })
  const rows = uniqueTexts(knownRows.filter(isNotExcluded(search)), ranges)
  const lowest = rows.at(-1)?.relevance ?? Infinity
  const matchRows = matches.map(row => ({ ...row, relevance: Math.min(row.relevance, lowest) }))
  return {
    rows: uniqueTexts([...rows, ...matchRows], ranges),
    weight: 1,
    toRanked: row => ({
      ...row,
      strength: row.statesAttribute ? tuned.floor.attributeStrength : 1,
      vector,
    }),
  }
}

/** Newest rows that are read for statements, and greatest numbers of rows of each sort. */
const statementsReadMax = 400
const statementsMax = 16
const reflectionsMax = 12
const namesMax = 4

/**
 * Finds what is known of a person: the name, however old, reflections, the most important ones first, then the newest
 * statements. In short steps; the rows must not change before the last.
 *
 * @param isIdentity "who am I": where the name is known, statements about no person are left out
 */
function* rowsOfPerson(
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

/** Signals of rows that are found by their time. */
const signals: Signals = { ...noSignals, time: 1 }

const toRow = (range: SearchRange, row: number): ScoredRow => ({
  range,
  row,
  at: range.tierIndex.timeAt(row),
  signals: { ...signals },
  relevance: 1,
  ownShare: 1,
})

/** A row with the name of the person, which answers by itself. */
const toNameRow = (range: SearchRange, row: number): ScoredRow => {
  const found = toRow(range, row)
  return { ...found, signals: { ...found.signals, words: 1 }, statesAttribute: true }
}

const tellsOfPerson = ({ range: { tierIndex }, row }: ScoredRow): boolean =>
  tierIndex.passes(row, textTests.tellsOfPerson)

/** Returns the newest rows of a range that are allowed. */
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

/** Tokens of the shortest statement that is no note: "not now" states nothing. */
const statementTokensMin = 4

/** Whether a row has a person's own words that neither ask nor give a task. */
function isStatement({ tierIndex }: SearchRange, row: number): boolean {
  if (tierIndex.isFact(row) || tierIndex.role(row) !== 'user') return false
  const isShort = tierIndex.tokens(row) < statementTokensMin
  if (isShort && !tierIndex.passes(row, textTests.isProfileNote)) return false
  return tierIndex.passes(row, textTests.states)
}
