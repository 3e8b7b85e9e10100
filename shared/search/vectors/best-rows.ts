import type { Codec, Question } from '#shared/search/vectors/codec.ts'
import { scan, type Ranked } from '#shared/search/vectors/scan.ts'
import { isSketchable } from '#shared/search/vectors/prefilter.ts'
import { chunkMax, sketchOf, type Chunk } from '#shared/search/vectors/vector-chunk.ts'

/** Rows `from` to `to` of a chunk. */
export type Piece = {
  chunk: Chunk
  from: number
  to: number
  /** The number the first row of the chunk has among all rows. */
  start: number
}

/** Asking every piece for everything costs 0.1 ms: it is asked for its share and this more. */
const shareFactor = 1.25
const shareMin = 16

/** The `k` rows of all pieces whose product with the question is largest, by first sight. */
export function bestRows(
  codec: Codec,
  pieces: readonly Piece[],
  question: Question,
  k: number,
): Ranked {
  const total = pieces.reduce((sum, piece) => sum + sizeOf(piece), 0)
  const found = pieces.map(piece => {
    const fair = Math.ceil((sizeOf(piece) / total) * k)
    const most = Math.min(k, Math.ceil(fair * shareFactor) + shareMin)
    return scanPiece(codec, piece, question, { most, sure: fair })
  })
  const best = found.reduce((one, other) => merged(one, other, k))

  // Where even the last answer made it, there may be more: the best rows need not be spread evenly.
  const worst = best.dots.at(-1)!
  const cutShort = (ranked: Ranked, piece: Piece) =>
    ranked.rows.length < Math.min(k, sizeOf(piece)) && ranked.dots.at(-1)! > worst
  if (!found.some((ranked, i) => cutShort(ranked, pieces[i]!))) return best
  return pieces
    .map((piece, i) =>
      cutShort(found[i]!, piece)
        ? scanPiece(codec, piece, question, { most: k, sure: k })
        : found[i]!,
    )
    .reduce((one, other) => merged(one, other, k))
}

function sizeOf({ from, to }: Piece): number {
  return to - from
}

/** How many rows are returned, and how many of the best are nearly always among them. */
type Wanted = { most: number; sure: number }

function scanPiece(codec: Codec, piece: Piece, question: Question, wanted: Wanted): Ranked {
  const { rows, dots } = scanRange(codec, piece, question, wanted)
  const { start } = piece
  for (let i = 0; i < rows.length; i++) rows[i]! += start
  return { rows, dots }
}

/** Rows of a chunk by their numbers in it. */
function scanRange(
  codec: Codec,
  { chunk, from, to }: Piece,
  question: Question,
  { most, sure }: Wanted,
): Ranked {
  const { dimension } = codec
  const { values } = chunk.rows
  const sketch = isSketchable(to - from, dimension) ? sketchOf(codec, chunk) : null
  const likely = sketch?.likely(question.values as Int8Array, from, to, sure)
  if (likely) {
    const some = roomFor(values, likely.length * dimension)
    for (let i = 0; i < likely.length; i++) copyRow(values, likely[i]!, some, i, dimension)
    const { rows, dots } = scan(some, likely.length, question.values, most)
    return { rows: rows.map(place => likely[place]!), dots }
  }
  if (from === 0) return scan(values, to, question.values, most)
  // A scan begins at the start of a buffer.
  const copy = roomFor(values, (to - from) * dimension)
  copy.set(values.subarray(from * dimension, to * dimension))
  const { rows, dots } = scan(copy, to - from, question.values, most)
  return { rows: rows.map(row => row + from), dots }
}

/** The products of some rows, each given by its chunk and its number there, in their order. */
export function productsOf(
  { dimension }: Codec,
  count: number,
  rowAt: (index: number) => { chunk: Chunk; row: number },
  question: Question,
): Float32Array {
  const products = new Float32Array(count)
  const some = roomFor(question.values, Math.min(count, chunkMax) * dimension)
  for (let done = 0; done < count; done += chunkMax) {
    const part = Math.min(chunkMax, count - done)
    for (let i = 0; i < part; i++) {
      const { chunk, row } = rowAt(done + i)
      copyRow(chunk.rows.values, row, some, i, dimension)
    }
    const { rows, dots } = scan(some, part, question.values, part)
    for (let i = 0; i < part; i++) products[done + rows[i]!] = dots[i]!
  }
  return products
}

function copyRow(
  from: Int8Array | Float32Array,
  row: number,
  to: Int8Array | Float32Array,
  place: number,
  dimension: number,
) {
  to.set(from.subarray(row * dimension, (row + 1) * dimension), place * dimension)
}

/**
 * At most one chunk. Kept: a fresh megabyte for every question costs more in page
 * faults and garbage collection than the scan itself.
 */
const scratch = { int8: new Int8Array(0), float32: new Float32Array(0) }

/** Room for so many numbers of the same kind, at the start of a buffer; the next call's too. */
function roomFor(values: Int8Array | Float32Array, length: number): Int8Array | Float32Array {
  if (values instanceof Int8Array) {
    if (scratch.int8.length < length) scratch.int8 = new Int8Array(length)
    return scratch.int8
  }
  if (scratch.float32.length < length) scratch.float32 = new Float32Array(length)
  return scratch.float32
}

/** The best of two rankings. */
function merged(one: Ranked, other: Ranked, k: number): Ranked {
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
