import type { Steps } from '#shared/core/event-loop.ts'
import type { SearchRange } from '#shared/search/ranking/search-range.ts'

/** The allowed rows of a range that are nearest to a vector, best first, about `count` of them. */
export type NearestRows = (
  range: SearchRange,
  vector: Float32Array,
  count: number,
) => Steps<Uint32Array>

/** As many allowed rows are compared one by one; of more, so many times as many rows are fetched and filtered. */
const comparedMax = 4_096
const filteredFactor = 8
/** Rows of one step of a filter. */
const filterStepRows = 8_192

/**
 * The nearest rows of several vectors: the first time that a range is asked for, it is compared with all of
 * them in one pass.
 *
 * @param sharedCount how many rows the pass finds; for more a range is searched again, for one vector
 */
export function nearestRowsOf(vectors: readonly Float32Array[], sharedCount: number): NearestRows {
  const passes = new Map<SearchRange, ReadonlyMap<Float32Array, Uint32Array>>()

  function* sharedPass(range: SearchRange): Steps<ReadonlyMap<Float32Array, Uint32Array>> {
    const known = passes.get(range)
    if (known) return known
    const found = yield* searchRange(range, vectors, sharedCount)
    const pass = new Map(vectors.map((vector, i) => [vector, found[i]!]))
    passes.set(range, pass)
    return pass
  }

  return function* (range, vector, count) {
    const shared = count <= sharedCount ? (yield* sharedPass(range)).get(vector) : undefined
    return shared ?? (yield* searchRange(range, [vector], count))[0]!
  }
}

function* searchRange(
  { tierIndex, first, end, allowsAll, allows }: SearchRange,
  vectors: readonly Float32Array[],
  count: number,
): Steps<Uint32Array[]> {
  if (allowsAll) return yield* tierIndex.approximateNearest(vectors, count, first, end)
  const allowed = yield* allowedRows({ first, end, allows })
  if (allowed) return yield* nearestOf(tierIndex, vectors, allowed, count)
  const nearest = yield* tierIndex.approximateNearest(vectors, count * filteredFactor, first, end)
  return nearest.map(rows => rows.filter(allows))
}

/** The allowed rows of a range; undefined when they are too many to be compared one by one. */
function* allowedRows({
  first,
  end,
  allows,
}: Pick<SearchRange, 'first' | 'end' | 'allows'>): Steps<Uint32Array | undefined> {
  const rows: number[] = []
  for (let row = first; row < end; row++) {
    if (row % filterStepRows === filterStepRows - 1) yield
    if (!allows(row)) continue
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
