import type { Steps } from '#shared/core/event-loop.ts'
import type { Codec, EncodedQuery } from '#shared/search/vectors/codec.ts'
import { emptyResult, scan, scanForAll, type ScanResult } from '#shared/search/vectors/scan.ts'
import { isPrefilterUseful } from '#shared/search/vectors/quantized-prefilter.ts'
import {
  chunkRowsMax,
  filledRows,
  prefilterSteps,
  type VectorChunk,
} from '#shared/search/vectors/vector-chunk.ts'

/** Rows `from` to `to` of a chunk. */
export type ChunkRange = {
  chunk: VectorChunk
  from: number
  to: number
  /** Row number of the chunk's first row in the matrix. */
  rowOffset: number
}

/** Rows of a chunk beyond its fair share: `k` rows of each would cost 0.1 ms. */
const overfetchFactor = 1.25
const overfetchMin = 16

/**
 * Finds the best rows for several queries in one pass: a chunk is compared with all of them while it is in the CPU cache. A
 * step is one chunk; the ranges must not change before the last.
 *
 * @param queries at most `queriesMax`
 */
export function* bestRowsForAll(
  codec: Codec,
  given: readonly ChunkRange[],
  queries: readonly EncodedQuery[],
  k: number,
): Steps<ScanResult[]> {
  const ranges = given.filter(({ chunk }) => filledRows(chunk)?.length !== 0)
  if (ranges.length === 0) return queries.map(() => emptyResult)
  const total = ranges.reduce((sum, range) => sum + rowCountOf(range), 0)
  const byRange: ScanResult[][] = []
  for (const range of ranges) {
    const fairShare = Math.ceil((rowCountOf(range) / total) * k)
    const limit = Math.min(k, Math.ceil(fairShare * overfetchFactor) + overfetchMin)
    byRange.push(yield* scanChunkRange(codec, range, queries, { limit, topCount: fairShare }))
    yield
  }
  const best: ScanResult[] = []
  for (const [i, query] of queries.entries()) {
    const results = byRange.map(ofRange => ofRange[i]!)
    best.push(yield* mergeRanges(codec, ranges, query, results, k))
  }
  return best
}

/** Merges the results of all ranges into the best `k`; a range that may have more of these is scanned again. */
function* mergeRanges(
  codec: Codec,
  ranges: readonly ChunkRange[],
  query: EncodedQuery,
  results: readonly ScanResult[],
  k: number,
): Steps<ScanResult> {
  const best = results.reduce((one, other) => mergeRanked(one, other, k))

  // The best rows may be spread unevenly: a chunk whose last row is among them may have more.
  const worst = best.dots.at(-1)!
  const isTruncated = (ranked: ScanResult, range: ChunkRange) =>
    ranked.rows.length < Math.min(k, rowCountOf(range)) && ranked.dots.at(-1)! > worst
  if (!results.some((ranked, i) => isTruncated(ranked, ranges[i]!))) return best
  const complete: ScanResult[] = []
  for (const [i, range] of ranges.entries()) {
    if (isTruncated(results[i]!, range)) {
      const limits = { limit: k, topCount: k }
      const [again] = yield* scanChunkRange(codec, range, [query], limits)
      complete.push(again!)
      yield
    } else complete.push(results[i]!)
  }
  return complete.reduce((one, other) => mergeRanked(one, other, k))
}

function rowCountOf({ from, to }: ChunkRange): number {
  return to - from
}

/** Rows to return, and how many of the best they nearly always include. */
type ScanLimits = { limit: number; topCount: number }

function* scanChunkRange(
  codec: Codec,
  range: ChunkRange,
  queries: readonly EncodedQuery[],
  limits: ScanLimits,
): Steps<ScanResult[]> {
  const results = yield* scanRows(codec, range, queries, limits)
  const { rowOffset } = range
  for (const { rows } of results) for (let i = 0; i < rows.length; i++) rows[i]! += rowOffset
  return results
}

/** Returns row numbers within the chunk. */
function* scanRows(
  codec: Codec,
  { chunk, from, to }: ChunkRange,
  queries: readonly EncodedQuery[],
  limits: ScanLimits,
): Steps<ScanResult[]> {
  const { dimension } = codec
  // Copies of a text have no vector: 4,000 rows may be one text.
  const filled = filledRows(chunk)?.filter(row => row >= from && row < to)
  if (filled) return scanCandidates(codec, chunk, filled, queries, limits)
  const isUseful = isPrefilterUseful(to - from, dimension) && chunk.scansBeforePrefilter-- <= 0
  const prefilter = isUseful ? yield* prefilterSteps(codec, chunk) : null
  if (!prefilter) return scanEveryRow(codec, { chunk, from, to }, queries, limits)
  const results: ScanResult[] = []
  for (const [i, query] of queries.entries()) {
    if (i > 0) yield
    const candidates = prefilter.candidates(query.values as Int8Array, from, to, limits.topCount)
    results.push(
      candidates
        ? scanCandidates(codec, chunk, candidates, [query], limits)[0]!
        : scanEveryRow(codec, { chunk, from, to }, [query], limits)[0]!,
    )
  }
  return results
}

function scanCandidates(
  { dimension }: Codec,
  { rows: { values } }: VectorChunk,
  candidates: Uint32Array,
  queries: readonly EncodedQuery[],
  { limit }: ScanLimits,
): ScanResult[] {
  const gathered = scratchFor(values, candidates.length * dimension)
  for (let i = 0; i < candidates.length; i++)
    copyRows(values, candidates[i]!, 1, { to: gathered, row: i, dimension })
  const numbers = queries.map(query => query.values)
  return scanForAll(gathered, candidates.length, numbers, limit).map(({ rows, dots }) => ({
    rows: rows.map(position => candidates[position]!),
    dots,
  }))
}

function scanEveryRow(
  { dimension }: Codec,
  { chunk, from, to }: Omit<ChunkRange, 'rowOffset'>,
  queries: readonly EncodedQuery[],
  { limit }: ScanLimits,
): ScanResult[] {
  const { values } = chunk.rows
  const numbers = queries.map(query => query.values)
  if (from === 0) return scanForAll(values, to, numbers, limit)
  // A scan reads from the start of a buffer.
  const copy = scratchFor(values, (to - from) * dimension)
  copy.set(values.subarray(from * dimension, to * dimension))
  return scanForAll(copy, to - from, numbers, limit).map(({ rows, dots }) => ({
    rows: rows.map(row => row + from),
    dots,
  }))
}

/** Returns the dot products of some rows, in their order; `placeOf` finds the chunk of a row, and its first row. */
export function dotProducts(
  { dimension }: Codec,
  rows: ArrayLike<number>,
  placeOf: (row: number) => { chunk: VectorChunk; start: number },
  query: EncodedQuery,
): Float32Array {
  const count = rows.length
  const products = new Float32Array(count)
  const gathered = scratchFor(query.values, Math.min(count, chunkRowsMax) * dimension)
  for (let done = 0; done < count; done += chunkRowsMax) {
    const end = Math.min(count, done + chunkRowsMax)
    for (let i = done; i < end;) {
      const { chunk, start } = placeOf(rows[i]!)
      const first = rows[i]! - start
      // Neighbours are copied at once: candidates come with the turns around them.
      let length = 1
      while (i + length < end && rows[i + length] === rows[i]! + length) length++
      length = Math.min(length, chunk.count - first)
      copyRows(chunk.rows.values, first, length, { to: gathered, row: i - done, dimension })
      i += length
    }
    const { rows: order, dots } = scan(gathered, end - done, query.values, end - done)
    for (let i = 0; i < order.length; i++) products[done + order[i]!] = dots[i]!
  }
  return products
}

function copyRows(
  from: Int8Array | Float32Array,
  first: number,
  length: number,
  { to, row, dimension }: { to: Int8Array | Float32Array; row: number; dimension: number },
) {
  to.set(from.subarray(first * dimension, (first + length) * dimension), row * dimension)
}

/** Scratch of at most one chunk: a new megabyte per query costs more than the scan itself. */
const scratch = { int8: new Int8Array(0), float32: new Float32Array(0) }

/** Returns scratch of the type of `values`, at least `length` long; the next call overwrites it. */
function scratchFor(values: Int8Array | Float32Array, length: number): Int8Array | Float32Array {
  if (values instanceof Int8Array) {
    if (scratch.int8.length < length) scratch.int8 = new Int8Array(length)
    return scratch.int8
  }
  if (scratch.float32.length < length) scratch.float32 = new Float32Array(length)
  return scratch.float32
}

/** Merges two rankings into the best `k`. */
function mergeRanked(one: ScanResult, other: ScanResult, k: number): ScanResult {
  const count = Math.min(k, one.rows.length + other.rows.length)
  const rows = new Uint32Array(count)
  const dots = new Float32Array(count)
  let a = 0
  let b = 0
  for (let i = 0; i < count; i++) {
    const first = b >= other.rows.length || one.dots[a]! >= other.dots[b]!
    const from = first ? one : other
    const at = first ? a++ : b++
    rows[i] = from.rows[at]!
    dots[i] = from.dots[at]!
  }
  return { rows, dots }
}
