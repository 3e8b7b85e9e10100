import { exactSearch, MetricKind } from 'usearch'

/** Other requests need the cores; with 10,000 rows of int8 two threads were no faster. */
const threads = 1

export type ScanResult = {
  /** Row numbers, best first. */
  rows: Uint32Array
  /** Dot product of each row with the query. */
  dots: Float32Array
}

const emptyResult: ScanResult = { rows: new Uint32Array(0), dots: new Float32Array(0) }

/**
 * Brute-force top-k: the `k` rows with the largest dot product with the query among the first
 * `count` rows of a matrix, fewer when there are fewer. `values` and `query` are of one type and each
 * begins its ArrayBuffer.
 *
 * @throws RangeError when either is a view into the middle of a buffer: usearch 2.26 ignores
 *   `byteOffset` and would silently read other rows.
 */
export function scan(
  values: Int8Array | Float32Array,
  count: number,
  query: Int8Array | Float32Array,
  k: number,
): ScanResult {
  if (values.byteOffset !== 0 || query.byteOffset !== 0) {
    throw new RangeError('A scan reads from the start of a buffer')
  }
  const wanted = Math.min(k, count)
  if (wanted <= 0) return emptyResult

  const dimension = query.length
  const { keys, distances } = exactSearch(
    values.subarray(0, count * dimension),
    query,
    dimension,
    wanted,
    MetricKind.IP,
    threads,
  )
  return { rows: rowsFromKeys(keys), dots: dotsFromDistances(distances) }
}

/** The low words of little-endian 64-bit keys: reading them as BigInt allocates one object each. */
function rowsFromKeys(keys: BigUint64Array): Uint32Array {
  const words = new Uint32Array(keys.buffer, keys.byteOffset, keys.length * 2)
  const rows = new Uint32Array(keys.length)
  for (let i = 0; i < rows.length; i++) rows[i] = words[2 * i]!
  return rows
}

/** usearch returns distances, `1 - dot`; converted in place. */
function dotsFromDistances(distances: Float32Array): Float32Array {
  for (let i = 0; i < distances.length; i++) distances[i] = 1 - distances[i]!
  return distances
}
