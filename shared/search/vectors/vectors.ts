import {
  bytesOf,
  chunkMax,
  copyOf,
  createChunk,
  insertInto,
  joined,
  removeFrom,
  replaceIn,
  resize,
  sketchOf,
  type Chunk,
} from '#shared/search/vectors/vector-chunk.ts'
import { bestRows, productsOf, type Piece } from '#shared/search/vectors/best-rows.ts'
import { clampCosine, lookMax, type Codec } from '#shared/search/vectors/codec.ts'

/** The best rows of a scan, and how near they are. */
export type Nearest = { rows: Uint32Array; cosines: Float32Array }

/** A matrix of unit vectors, row after row, that can be scanned over any range of rows. */
export type Vectors = {
  readonly count: number
  readonly bytes: number
  /** `places`: row numbers before the insertion, ascending; `count` means behind the last. */
  insert(places: readonly number[], vectors: readonly Float32Array[]): void
  replace(row: number, vector: Float32Array): void
  /** Rows ascending, each once. */
  remove(rows: readonly number[]): void
  /** The best `k` rows of [first, end), best first; of equals the later one first. */
  nearest(vector: Float32Array, k: number, first: number, end: number): Nearest
  /** The best `k` rows of [first, end) by first sight alone, best first. */
  nearRows(vector: Float32Array, k: number, first: number, end: number): Uint32Array
  /** The cosines of some rows by first sight, in their order: off by 0.0003 on average. */
  glances(vector: Float32Array, rows: ArrayLike<number>): Float32Array
  /** Always by second look. */
  cosines(vector: Float32Array, rows: ArrayLike<number>): Float32Array
  /** Gives back the room kept for growing. */
  trim(): void
}

/**
 * First sight errs by 0.0003, and sketches may leave a row out that is barely among those asked for:
 * so many more are found before the best are named.
 */
const spare = 40

/** How many of the best get the second look; 0.6 µs each, and further down nobody compares. */
const lookedAt = 64

/**
 * Rows live in chunks: growing, inserting and removing move at most a few
 * megabytes each, and no buffer is ever twice as large as its rows.
 */
export function createVectors(codec: Codec): Vectors {
  let chunks: Chunk[] = []
  /** First row of each chunk, and behind them the number of rows. */
  let starts: number[] = [0]

  function replaceChunks(next: Chunk[]) {
    chunks = next
    starts = [0]
    for (const chunk of chunks) starts.push(starts.at(-1)! + chunk.count)
  }

  function chunkOf(row: number): number {
    let low = 0
    let high = chunks.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if (starts[middle]! <= row) low = middle
      else high = middle - 1
    }
    return low
  }

  function cosinesOf(vector: Float32Array, rows: ArrayLike<number>): Float32Array {
    const cosines = new Float32Array(rows.length)
    for (let done = 0; done < rows.length; done += lookMax) {
      const count = Math.min(lookMax, rows.length - done)
      for (let place = 0; place < count; place++) {
        const row = rows[done + place]!
        const c = chunkOf(row)
        codec.place(chunks[c]!.rows, row - starts[c]!, place)
      }
      codec.look(vector, count, cosines.subarray(done, done + count))
    }
    return cosines
  }

  /** Products as cosines, in place. */
  function scaled(rows: ArrayLike<number>, products: Float32Array, unit: number): Float32Array {
    for (let i = 0; i < products.length; i++) {
      const c = chunkOf(rows[i]!)
      const scale = chunks[c]!.rows.scales[rows[i]! - starts[c]!] ?? 1
      products[i] = clampCosine(products[i]! * scale * unit)
    }
    return products
  }

  function piecesOf(first: number, end: number): Piece[] {
    const pieces: Piece[] = []
    for (let c = chunkOf(first); c < chunks.length && starts[c]! < end; c++) {
      const chunk = chunks[c]!
      const start = starts[c]!
      const from = Math.max(0, first - start)
      pieces.push({ chunk, from, to: Math.min(chunk.count, end - start), start })
    }
    return pieces
  }

  return {
    get count() {
      return starts.at(-1)!
    },
    get bytes() {
      return chunks.reduce((sum, chunk) => sum + bytesOf(chunk), 0)
    },

    insert(places, vectors) {
      if (chunks.length === 0) replaceChunks([createChunk(codec, 0)])
      const next: Chunk[] = []
      let done = 0
      for (let c = 0; c < chunks.length; c++) {
        const chunk = chunks[c]!
        const end = c === chunks.length - 1 ? Number.POSITIVE_INFINITY : starts[c + 1]!
        let until = done
        while (until < places.length && places[until]! < end) until++
        const own = places.slice(done, until).map(place => place - starts[c]!)
        next.push(...grown(codec, chunk, own, vectors.slice(done, until)))
        done = until
      }
      replaceChunks(next)
    },

    replace(row, vector) {
      const c = chunkOf(row)
      replaceIn(codec, chunks[c]!, row - starts[c]!, vector)
    },

    remove(rows) {
      let done = 0
      for (let c = 0; c < chunks.length && done < rows.length; c++) {
        let until = done
        while (until < rows.length && rows[until]! < starts[c + 1]!) until++
        const own = rows.slice(done, until).map(row => row - starts[c]!)
        if (own.length > 0) removeFrom(codec, chunks[c]!, own)
        done = until
      }
      replaceChunks(withoutRemnants(codec, chunks))
    },

    nearest(vector, k, first, end) {
      const sought = Math.min(end - first, k + spare)
      if (k <= 0 || sought <= 0) return { rows: new Uint32Array(0), cosines: new Float32Array(0) }
      const pieces = piecesOf(first, end)
      const question = codec.question(vector)
      const { rows, dots } = bestRows(codec, pieces, question, sought)
      const cosines = scaled(rows, dots, question.unit)
      cosines.set(cosinesOf(vector, rows.subarray(0, lookedAt)))
      return ranked(rows, cosines, k)
    },

    nearRows(vector, k, first, end) {
      const sought = Math.min(end - first, k)
      if (sought <= 0) return new Uint32Array(0)
      return bestRows(codec, piecesOf(first, end), codec.question(vector), sought).rows
    },

    glances(vector, rows) {
      const question = codec.question(vector)
      const rowAt = (index: number) => {
        const c = chunkOf(rows[index]!)
        return { chunk: chunks[c]!, row: rows[index]! - starts[c]! }
      }
      return scaled(rows, productsOf(codec, rows.length, rowAt, question), question.unit)
    },

    cosines: cosinesOf,

    trim() {
      for (const chunk of chunks) {
        resize(codec, chunk, chunk.count)
        sketchOf(codec, chunk)
      }
    },
  }
}

/** A chunk with vectors inserted, in as many chunks as that takes. */
function grown(
  codec: Codec,
  chunk: Chunk,
  places: readonly number[],
  vectors: readonly Float32Array[],
): Chunk[] {
  if (vectors.length === 0) return [chunk]
  // Newest rows fill a chunk before the next one begins; only history is cut in even pieces.
  const appending = places[0] === chunk.count
  const fitting = appending ? Math.min(vectors.length, chunkMax - chunk.count) : vectors.length
  insertInto(codec, chunk, places.slice(0, fitting), vectors.slice(0, fitting))
  if (fitting < vectors.length) {
    const behind = vectors.slice(fitting)
    return [
      chunk,
      ...grown(
        codec,
        createChunk(codec, 0),
        behind.map(() => 0),
        behind,
      ),
    ]
  }
  if (chunk.count <= chunkMax) return [chunk]

  const pieces = Math.ceil(chunk.count / chunkMax)
  const size = Math.ceil(chunk.count / pieces)
  return Array.from({ length: pieces }, (_, piece) =>
    copyOf(codec, chunk, piece * size, Math.min(chunk.count, (piece + 1) * size)),
  )
}

/** Chunks that removals left nearly empty are joined, so that a scan does not pay for each. */
function withoutRemnants(codec: Codec, chunks: readonly Chunk[]): Chunk[] {
  const kept: Chunk[] = []
  for (const chunk of chunks) {
    const before = kept.at(-1)
    if (chunk.count === 0) continue
    if (before && before.count + chunk.count <= chunkMax / 2) {
      kept[kept.length - 1] = joined(codec, before, chunk)
    } else {
      kept.push(chunk)
    }
  }
  return kept
}

/** The best `k`, of equals the later row first. */
function ranked(rows: Uint32Array, cosines: Float32Array, k: number): Nearest {
  const order = Array.from(rows.keys())
  order.sort((a, b) => cosines[b]! - cosines[a]! || rows[b]! - rows[a]!)
  const best = Uint32Array.from(order.slice(0, k))
  return { rows: best.map(i => rows[i]!), cosines: Float32Array.from(best, i => cosines[i]!) }
}
