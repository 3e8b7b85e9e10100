import type { Codec, Question } from '#shared/recall/codec.ts'
import { scan, type Ranked } from '#shared/recall/scan.ts'
import type { Chunk } from '#shared/recall/vector-chunk.ts'

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
  const share = (k * shareFactor) / total
  const found = pieces.map(piece =>
    scanPiece(codec, piece, question, Math.min(k, Math.ceil(sizeOf(piece) * share) + shareMin)),
  )
  const best = found.reduce((one, other) => merged(one, other, k))

  // Where even the last answer made it, there may be more: the best rows need not be spread evenly.
  const worst = best.dots.at(-1)!
  const cutShort = (ranked: Ranked, piece: Piece) =>
    ranked.rows.length < Math.min(k, sizeOf(piece)) && ranked.dots.at(-1)! > worst
  if (!found.some((ranked, i) => cutShort(ranked, pieces[i]!))) return best
  return pieces
    .map((piece, i) =>
      cutShort(found[i]!, piece) ? scanPiece(codec, piece, question, k) : found[i]!,
    )
    .reduce((one, other) => merged(one, other, k))
}

function sizeOf({ from, to }: Piece): number {
  return to - from
}

function scanPiece(
  codec: Codec,
  { chunk, from, to, start }: Piece,
  question: Question,
  k: number,
): Ranked {
  const { rows, dots } = scanRange(codec, chunk, from, to, question, k)
  for (let i = 0; i < rows.length; i++) rows[i]! += start
  return { rows, dots }
}

/** A scan begins at the start of a buffer: rows from the midst of a chunk are copied out. */
function scanRange(
  codec: Codec,
  { rows: { values } }: Chunk,
  from: number,
  to: number,
  question: Question,
  k: number,
): Ranked {
  if (from === 0) return scan(values, to, question.values, k)
  const copy = copied(values.subarray(from * codec.dimension, to * codec.dimension))
  const { rows, dots } = scan(copy, to - from, question.values, k)
  return { rows: rows.map(row => row + from), dots }
}

/**
 * At most one chunk. Kept: a fresh megabyte for every question costs more in page
 * faults and garbage collection than the scan itself.
 */
const scratch = { int8: new Int8Array(0), float32: new Float32Array(0) }

/** The same numbers at the start of a buffer; overwritten by the next call. */
function copied(part: Int8Array | Float32Array): Int8Array | Float32Array {
  if (part instanceof Int8Array) {
    if (scratch.int8.length < part.length) scratch.int8 = new Int8Array(part.length)
    scratch.int8.set(part)
    return scratch.int8
  }
  if (scratch.float32.length < part.length) scratch.float32 = new Float32Array(part.length)
  scratch.float32.set(part)
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
