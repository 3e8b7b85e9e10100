import type { Steps } from '#shared/core/event-loop.ts'
import type { TimeSpan } from '#shared/search/query/calendar.ts'
import type { AdjacentTurns } from '#shared/search/ranking/context.ts'
import { partOf, type SearchRange } from '#shared/search/ranking/ranges.ts'
import { emptySums, positionsOf, type WordScores } from '#shared/search/ranking/score-words.ts'
import { findStatements, statementCues } from '#shared/search/profile/find-statements.ts'
import { hasLabel } from '#shared/search/query/attributes.ts'
import type { QueryTerm } from '#shared/search/query/parse-query.ts'
import { isMarkerTerm, speakerMarker, termsOf } from '#shared/search/words/index-terms.ts'
import { tuned } from '#shared/search/tuned.ts'

/** Rows that a scan finds in a range; best first. */
export type ScannedRows = {
  /** Null: candidates by words and times only. */
  byVector: Uint32Array | null
  /** The nearest rows of each time that has more rows than are taken of one. */
  byTime: ReadonlyMap<TimeSpan, Uint32Array>
}

export type CandidateQuery = {
  vector: Float32Array | null
  scanned: ScannedRows
  wordScores: WordScores
  times: readonly TimeSpan[]
  /** Rows that state an attribute that is asked for. */
  attributeRows: ReadonlySet<number>
  /** Rows to take by vector and by words each. */
  candidateCount: number
}

const { contextSeedsMax, wordShareMin, wordOnlyMax } = tuned.candidates
/** Rows of each time named in the query that become candidates whatever their content. */
const rowsPerTimeMax = 60
const timeRowsMax = 4 * rowsPerTimeMax

/** Compares the rows of a range with the vector of a query, in short steps; without a vector nothing. */
export function* scanRange(
  range: SearchRange,
  query: Pick<CandidateQuery, 'vector' | 'times' | 'candidateCount'> & {
    /** Null: no scan, candidates by words and times only. */
    nearestRows: NearestRows | null
  },
): Steps<ScannedRows> {
  const { vector, nearestRows, times, candidateCount } = query
  const byTime = new Map<TimeSpan, Uint32Array>()
  if (!vector) return { byVector: null, byTime }
  const byVector = nearestRows ? yield* nearestRows(range, vector, candidateCount) : null
  for (const time of range.allowsAll ? times : []) {
    const { from, to } = rowsWithin(range, time)
    if (to - from <= rowsPerTimeMax) continue
    const [nearest] = yield* searchRange(partOf(range, from, to), [vector], rowsPerTimeMax)
    byTime.set(time, nearest!)
  }
  return { byVector, byTime }
}

function rowsWithin({ tierIndex, first, end }: SearchRange, time: TimeSpan) {
  const span = tierIndex.range(time.from, time.to)
  return { from: Math.max(first, span.first), to: Math.min(end, span.end) }
}

/**
 * Returns the rows of a range to score: the best by words, the best by vector, the context of the best of both, rows
 * of the times named in the query, and rows that state what is asked for.
 */
export function findCandidates(
  range: SearchRange,
  { firstContextRow, lastContextRow }: AdjacentTurns,
  search: CandidateQuery,
): {
  /** Ascending. */
  rows: Uint32Array
  /** Approximate; 0 when the query has no vector. */
  cosines: Float32Array
  /** Whether a row of every text of the range is a candidate. */
  complete: boolean
} {
  const { tierIndex, first, end, allowsAll } = range
  const { vector, scanned, candidateCount } = search
  const rows = createRowSet(first, end)
  const byWords = rowsByWords(search)
  const isComplete = candidateCount >= end - first
  if (isComplete) for (let row = first; row < end; row++) rows.add(row)

  for (const best of [byWords, scanned.byVector ?? []]) {
    for (let i = 0; i < best.length; i++) rows.add(best[i]!)
    for (let i = 0; i < Math.min(contextSeedsMax, best.length); i++) {
      const row = best[i]!
      const last = lastContextRow(row)
      for (let near = firstContextRow(row); near <= last; near++) rows.add(near)
    }
  }
  addRowsWithinTimes(range, search, rows)
  for (const row of search.attributeRows) rows.add(row)

  const all = rows.ascending()
  const allowed = allowsAll ? all : all.filter(row => range.allows(row))
  return {
    rows: allowed,
    cosines: vector
      ? tierIndex.approximateCosines(vector, allowed)
      : new Float32Array(allowed.length),
    complete: candidateCount >= tierIndex.textCount || isComplete || rows.size >= end - first,
  }
}

/** Returns the allowed rows with the best words, best first; without a scan only rows with most of the words. */
function rowsByWords({ wordScores, scanned, vector, candidateCount }: CandidateQuery): number[] {
  const { totals, matching, maxTotal, positions } = wordScores
  const isScanned = scanned.byVector || !vector
  const least = isScanned ? 0 : wordShareMin * maxTotal
  const isFit = (at: number): boolean => totals[at]! >= least && positions.rowOf(at) >= 0
  const allowed = positions.hasAll && least === 0 ? matching : matching.filter(isFit)
  const best = topRows(totals, allowed, isScanned ? candidateCount : wordOnlyMax)
  return best.map(positions.rowOf)
}

function addRowsWithinTimes(range: SearchRange, { times, scanned }: CandidateQuery, rows: RowSet) {
  const sizeMax = rows.size + timeRowsMax
  for (const time of times) {
    const { from, to } = rowsWithin(range, time)
    if (from >= to || rows.size >= sizeMax) continue
    const nearest = scanned.byTime.get(time)
    if (!range.allowsAll) {
      let added = 0
      for (let row = from; row < to && added < rowsPerTimeMax; row++) {
        if (!range.allows(row)) continue
        rows.add(row)
        added++
      }
    } else if (nearest) {
      for (const row of nearest) rows.add(row)
    } else for (let row = from; row < Math.min(to, from + rowsPerTimeMax); row++) rows.add(row)
  }
}

/** Finds the allowed rows of a range that are nearest to a vector, best first, about `count` of them. */
export type NearestRows = (
  range: SearchRange,
  vector: Float32Array,
  count: number,
) => Steps<Uint32Array>

/** So many allowed rows are compared one by one. */
const comparedMax = 4_096
/** So many times the wanted number of rows is fetched and filtered, where there are more. */
const filteredFactor = 8
/** Rows of one step of a filter. */
const filterStepRows = 8_192

/**
 * Searches ranges for several vectors. The first search of a range compares it with all vectors in one pass.
 *
 * @param sharedCount rows that the pass finds; for more, a range is searched again for one vector
 */
export function nearestRowsOf(vectors: readonly Float32Array[], sharedCount: number): NearestRows {
  const passes = new Map<SearchRange, ReadonlyMap<Float32Array, Uint32Array>>()

  function* sharedPass(range: SearchRange): Steps<ReadonlyMap<Float32Array, Uint32Array>> {
    const knownPass = passes.get(range)
    if (knownPass) return knownPass
    const rowsOfVectors = yield* searchRange(range, vectors, sharedCount)
    const pass = new Map(vectors.map((vector, i) => [vector, rowsOfVectors[i]!]))
    passes.set(range, pass)
    return pass
  }

  return function* (range, vector, count) {
    const shared = count <= sharedCount ? (yield* sharedPass(range)).get(vector) : undefined
    return shared ?? (yield* searchRange(range, [vector], count))[0]!
  }
}

/** The newest row of each text. */
function* searchRange(
  range: SearchRange,
  vectors: readonly Float32Array[],
  count: number,
): Steps<Uint32Array[]> {
  const { tierIndex, first, end, allowsAll, allows, newestOf } = range
  const newest = (rows: Uint32Array): Uint32Array =>
    Uint32Array.from(Array.from(rows, newestOf).filter(row => row >= 0))
  if (!allowsAll) {
    const allowed = yield* rowsWhere(range, row => allows(row) && newestOf(row) === row)
    if (allowed) return yield* nearestOf(tierIndex, vectors, allowed, count)
  }
  const fetched = allowsAll ? count : count * filteredFactor
  const nearest = yield* tierIndex.approximateNearest(vectors, fetched, first, end)
  if (!tierIndex.hasCopies || (allowsAll && end - first === tierIndex.count))
    return nearest.map(newest)
  // Texts whose home is outside of the range: compared one by one, or the nearest of the whole tier.
  const isOutside = (row: number): boolean => {
    const home = tierIndex.homeRow(row)
    return (home < first || home >= end) && newestOf(row) === row
  }
  const outside = yield* rowsWhere(range, isOutside)
  const anywhere = outside
    ? undefined
    : yield* tierIndex.approximateNearest(vectors, count * filteredFactor, 0, tierIndex.count)
  const rowsOfVectors: Uint32Array[] = []
  for (const [i, vector] of vectors.entries()) {
    const outsideRows = outside ?? newest(anywhere![i]!)
    const rows = Uint32Array.from(new Set([...newest(nearest[i]!), ...outsideRows]))
    rowsOfVectors.push((yield* nearestOf(tierIndex, [vector], rows, count))[0]!)
  }
  return rowsOfVectors
}

/** Returns the rows of a range that fit; undefined when they are too many to be compared one by one. */
function* rowsWhere(
  { first, end }: Pick<SearchRange, 'first' | 'end'>,
  fits: (row: number) => boolean,
): Steps<Uint32Array | undefined> {
  const rows: number[] = []
  for (let row = first; row < end; row++) {
    if (row % filterStepRows === filterStepRows - 1) yield
    if (!fits(row)) continue
    if (rows.length === comparedMax) return undefined
    rows.push(row)
  }
  return Uint32Array.from(rows)
}

function* nearestOf(
  tierIndex: SearchRange['tierIndex'],
  vectors: readonly Float32Array[],
  rows: Uint32Array,
  count: number,
): Steps<Uint32Array[]> {
  const nearest: Uint32Array[] = []
  for (const vector of vectors) {
    const cosines = tierIndex.approximateCosines(vector, rows)
    const order = Uint32Array.from(rows, (_, i) => i).sort((a, b) => cosines[b]! - cosines[a]!)
    nearest.push(order.subarray(0, count).map(i => rows[i]!))
    yield
  }
  return nearest
}

/** A set of row numbers. */
type RowSet = {
  readonly size: number
  add(row: number): void
  ascending(): Uint32Array
}

/** The number of the set that a row was last added to: a new set needs no clearing. */
let lastSetOfRow = new Uint32Array(0)
let setCount = 0

/** Creates an empty set for rows of [first, end). It is valid until the next call. */
function createRowSet(first: number, end: number): RowSet {
  if (lastSetOfRow.length < end - first || setCount === 0xffffffff) {
    lastSetOfRow = new Uint32Array(end - first)
    setCount = 0
  }
  const setNumber = ++setCount
  const rows: number[] = []
  return {
    get size() {
      return rows.length
    },
    add(row) {
      if (lastSetOfRow[row - first] === setNumber) return
      lastSetOfRow[row - first] = setNumber
      rows.push(row)
    },
    ascending: () => new Uint32Array(rows).sort(),
  }
}

const bins = 256
const histogram = new Uint32Array(bins)

/**
 * Returns the `wanted` rows with the largest values, best first, and up to half as many more that are nearly as good
 * as the last of them. All values are above 0.
 */
function topRows(values: Float32Array, rows: Uint32Array, wanted: number): number[] {
  if (rows.length === 0 || wanted <= 0) return []
  const threshold = rows.length <= wanted ? 0 : topThreshold(values, rows, wanted)
  const top: number[] = []
  for (let i = 0; i < rows.length; i++) if (values[rows[i]!]! >= threshold) top.push(rows[i]!)
  return top.sort((a, b) => values[b]! - values[a]! || b - a).slice(0, Math.ceil(wanted * 1.5))
}

/** Returns a value that at least `wanted` rows reach. By a histogram: sorting costs ten times as much. */
function topThreshold(values: Float32Array, rows: Uint32Array, wanted: number): number {
  let most = 0
  for (let i = 0; i < rows.length; i++) most = Math.max(most, values[rows[i]!]!)
  histogram.fill(0)
  const scale = (bins - 1) / most
  for (let i = 0; i < rows.length; i++) histogram[(values[rows[i]!]! * scale) | 0]!++
  let bin = bins - 1
  for (let seen = histogram[bin]!; seen < wanted && bin > 0; seen += histogram[bin]!) bin--
  return bin / scale
}

/** Rows with most of the words of labels, and of sentences, whose text is read. */
const notesReadMax = 32
const sentencesReadMax = 64
/** Texts read in one step. */
const readStep = 16
/** Tokens of a note with labels, even of several lines. */
const tokensMax = 200
/** Weight of a label that begins a text. */
const beginningWeight = 3

/**
 * Finds the user's rows of a range that state an attribute, as a note with one of its labels ("Name: Ada") or as a
 * sentence ("Je m'appelle Ada"). In short steps; the rows must not change before the last.
 *
 * @param labels of the attribute in all languages
 */
export function* findAttributeRows(
  range: SearchRange,
  labels: ReadonlySet<string>,
): Steps<ReadonlySet<number>> {
  const { tierIndex, allows } = range
  const notes = rowsWithTerms(range, labelTerms(labels), notesReadMax)
  yield
  const rows = new Set([...notes, ...rowsWithTerms(range, sentenceTerms(labels), sentencesReadMax)])
  const statingRows = new Set<number>()
  let count = 0
  for (const row of rows) {
    if (count++ % readStep === 0) yield
    if (allows(row) && statesAttribute(row)) statingRows.add(row)
  }
  return statingRows

  function statesAttribute(row: number): boolean {
    if (tierIndex.tokens(row) > tokensMax) return false
    const isOfUser = tierIndex.role(row) === 'user'
    if (!isOfUser && !tierIndex.isFact(row)) return false
    const { text } = tierIndex.memory(row)
    return hasLabel(text, labels) || (isOfUser && hasStatement(text, labels))
  }
}

/**
 * Returns the rows with most of the words, short ones first. In a large vault many rows have a word such as "name";
 * those in which people introduce themselves are short.
 */
function rowsWithTerms(range: SearchRange, terms: readonly QueryTerm[], count: number): number[] {
  const { tierIndex } = range
  const positions = positionsOf(range)
  const { rowOf } = positions
  const sums = emptySums(positions.count)
  const allowed = positions.score(terms, sums).filter(at => rowOf(at) >= 0)
  for (const at of allowed) sums[at]! /= Math.sqrt(1 + tierIndex.tokens(rowOf(at)))
  return topRows(sums, allowed, count).map(rowOf)
}

const wordsOf = (texts: Iterable<string>): string[] =>
  [...new Set(Array.from(texts).flatMap(termsOf))].filter(term => !isMarkerTerm(term))

const labelTerms = (labels: ReadonlySet<string>): QueryTerm[] =>
  wordsOf(labels).flatMap(term => [
    { term, weight: 1 },
    { term: speakerMarker + term, weight: beginningWeight },
  ])

const sentenceTerms = (subjects: ReadonlySet<string>): QueryTerm[] =>
  wordsOf(statementCues(subjects)).map(term => ({ term, weight: 1 }))

const hasStatement = (text: string, subjects: ReadonlySet<string>): boolean =>
  findStatements(text).some(({ facts }) => facts.some(({ subject }) => subjects.has(subject)))
