import { runAtOnce, type Steps } from '#shared/core/event-loop.ts'

/** A matrix of vectors, or a tier of an index. */
type Rows = {
  readonly count: number
  approximateNearest(
    vectors: readonly Float32Array[],
    k: number,
    first: number,
    end: number,
  ): Steps<Uint32Array[]>
  cosines(vector: Float32Array, rows: ArrayLike<number>): Float32Array
}

/** Rows found beyond those asked for: approximate cosines have a mean error of 0.0003. */
const overfetch = 40

/** Returns the `k` rows of [first, end) with the largest exact cosines, best first; of equals the later row first. */
export function nearestRows(
  rows: Rows,
  vector: Float32Array,
  k: number,
  first = 0,
  end = rows.count,
): { rows: Uint32Array; cosines: Float32Array } {
  const count = k > 0 ? k + overfetch : 0
  const [found] = runAtOnce(rows.approximateNearest([vector], count, first, end))
  const cosines = rows.cosines(vector, found!)
  const order = Array.from(found!.keys())
  order.sort((a, b) => cosines[b]! - cosines[a]! || found![b]! - found![a]!)
  const best = Uint32Array.from(order.slice(0, k))
  return { rows: best.map(i => found![i]!), cosines: Float32Array.from(best, i => cosines[i]!) }
}
