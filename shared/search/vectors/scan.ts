import { exactSearch, MetricKind } from 'usearch'

/** Threads of a scan: other requests need the cores, and two were no faster with 10,000 rows of int8. */
const threads = 1

export type ScanResult = {
  /** Row numbers, best first. */
  rows: Uint32Array
  /** Dot product of each row with the query. */
  dots: Float32Array
}

export const emptyResult: ScanResult = { rows: new Uint32Array(0), dots: new Float32Array(0) }

/**
 * Finds the `k` rows with the largest dot product with the query among the first `count` rows of a matrix, by brute
 * force. `values` and `query` are of one type and each begins its ArrayBuffer.
 *
 * @throws RangeError when either is a view into the middle of a buffer: usearch 2.26 ignores `byteOffset` and would
 *   silently read other rows
 */
export function scan(
  values: Int8Array | Float32Array,
  count: number,
  query: Int8Array | Float32Array,
  k: number,
): ScanResult {
  return scanMatrix(values, count, query, query.length, k)[0]!
}

/** Scans for several queries of one length, in one pass that reads every row once. */
export function scanForAll(
  values: Int8Array | Float32Array,
  count: number,
  queries: readonly (Int8Array | Float32Array)[],
  k: number,
): ScanResult[] {
  const [first] = queries
  if (!first) return []
  if (queries.length === 1) return [scan(values, count, first, k)]
  const dimension = first.length
  const length = queries.length * dimension
  const matrix = first instanceof Int8Array ? new Int8Array(length) : new Float32Array(length)
  queries.forEach((query, i) => matrix.set(query, i * dimension))
  return scanMatrix(values, count, matrix, dimension, k)
}

/** Returns one result for each row of `queries`. */
function scanMatrix(
  values: Int8Array | Float32Array,
  count: number,
  queries: Int8Array | Float32Array,
  dimension: number,
  k: number,
): ScanResult[] {
  if (values.byteOffset !== 0 || queries.byteOffset !== 0) {
    throw new RangeError('A scan reads from the start of a buffer')
  }
  const queryCount = queries.length / dimension
  const wanted = Math.min(k, count)
  if (wanted <= 0) return Array.from({ length: queryCount }, () => emptyResult)

  const { keys, distances } = exactSearch(
    values.subarray(0, count * dimension),
    queries,
    dimension,
    wanted,
    MetricKind.IP,
    threads,
  )
  const rows = rowsFromKeys(keys)
  const dots = dotsFromDistances(distances)
  if (queryCount === 1) return [{ rows, dots }]
  return Array.from({ length: queryCount }, (_, i) => ({
    rows: rows.subarray(i * wanted, (i + 1) * wanted),
    dots: dots.subarray(i * wanted, (i + 1) * wanted),
  }))
}

/** Reads the low words of little-endian 64-bit keys: a BigInt would allocate an object each. */
function rowsFromKeys(keys: BigUint64Array): Uint32Array {
  const words = new Uint32Array(keys.buffer, keys.byteOffset, keys.length * 2)
  const rows = new Uint32Array(keys.length)
  for (let i = 0; i < rows.length; i++) rows[i] = words[2 * i]!
  return rows
}

/** Converts the distances of usearch, `1 - dot`, in place. */
function dotsFromDistances(distances: Float32Array): Float32Array {
  for (let i = 0; i < distances.length; i++) distances[i] = 1 - distances[i]!
  return distances
}
