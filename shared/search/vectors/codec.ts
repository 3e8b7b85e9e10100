/** Encoded vectors, row after row. A column that the codec does not use is empty. */
export type EncodedRows = {
  /** The numbers of a scan, `dimension` a row. */
  readonly values: Int8Array | Float32Array
  /** One more bit per number, for `rescore`. */
  readonly ninth: Uint8Array
  /** Factor of dot products with the values of a row. */
  readonly scales: Float32Array
}

export type EncodedQuery = {
  readonly values: Int8Array | Float32Array
  /** Factor of a dot product: with the scale of the row (1 where rows have none) it gives the cosine. */
  readonly unit: number
}

/**
 * Stores and compares unit vectors: `values` for a fast scan over all rows, then the more exact `rescore` for the few best.
 * One codec serves all indexes of a dimension; it owns the scratch memory of both steps.
 */
export type Codec = {
  readonly dimension: number
  /** Elements of one row in each column. */
  readonly strides: Readonly<Record<keyof EncodedRows, number>>
  /** Whether large chunks get a `QuantizedPrefilter`. */
  readonly usesPrefilter: boolean
  allocate(rows: number): EncodedRows
  encode(vector: Float32Array, rows: EncodedRows, row: number): void
  /** Encodes a query. The result is overwritten after `queriesMax` others. */
  encodeQuery(vector: Float32Array): EncodedQuery
  /** Copies a row to row `stagedRow`, from 0 to `rescoreMax - 1`, of the scratch matrix. */
  stageRow(rows: EncodedRows, row: number, stagedRow: number): void
  /** Writes the cosines of the staged rows 0 to `count - 1`. */
  rescore(vector: Float32Array, count: number, cosines: Float32Array): void
}

/** Most queries of one scan. */
export const queriesMax = 8

/** Rows of one `rescore`: 0.5 MB of int8 at 1,536 dimensions, which stays in the CPU cache. */
export const rescoreMax = 320

/** Limits a cosine, which rounding may carry past 1. */
export function clampCosine(cosine: number): number {
  return Math.max(-1, Math.min(1, cosine))
}
