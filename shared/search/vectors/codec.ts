/** Encoded vectors, row after row. A column its encoding has no use for is empty. */
export type EncodedRows = {
  /** What a scan reads: `dimension` numbers a row. */
  readonly values: Int8Array | Float32Array
  /** One more bit per number, for the second look. */
  readonly ninth: Uint8Array
  /** What a dot product with the values of a row is multiplied with. */
  readonly scales: Float32Array
}

/** A question as a scan over `values` takes it. */
export type EncodedQuery = {
  readonly values: Int8Array | Float32Array
  /** Times the dot product, times the scale of the row (1 where rows have none): the cosine. */
  readonly unit: number
}

/**
 * How unit vectors are written down and compared: `values` for a fast scan over
 * everything, then a second, more exact look at the few rows it found. One codec
 * serves every image of a dimension; it holds the scratch memory both steps need.
 */
export type Codec = {
  readonly dimension: number
  /** Elements of one row in each column. */
  readonly strides: Readonly<Record<keyof EncodedRows, number>>
  /** Whether sketches of rows help to find the best of many. */
  readonly usesPrefilter: boolean
  allocate(rows: number): EncodedRows
  encode(vector: Float32Array, rows: EncodedRows, row: number): void
  /** Prepares a question; overwritten by the next one. */
  encodeQuery(vector: Float32Array): EncodedQuery
  /** Copies a row to a place of the second look; places go from 0 to `lookMax - 1`. */
  stageRow(rows: EncodedRows, row: number, place: number): void
  /** Writes the cosines of the rows at places 0 to `count - 1`. */
  rescore(vector: Float32Array, count: number, cosines: Float32Array): void
}

/** Rows of one second look: 0.5 MB of int8 at 1,536 dimensions, which stays in the cache. */
export const rescoreMax = 320

/** Rounding may carry a cosine past 1. */
export function clampCosine(cosine: number): number {
  return Math.max(-1, Math.min(1, cosine))
}
