import {
  chunkBytes,
  chunkRowsMax,
  copyChunk,
  createVectorChunk,
  insertRows,
  joinChunks,
  removeRows,
  replaceRow,
  resizeChunk,
  prefilterOf,
  type VectorChunk,
} from '#shared/search/vectors/vector-chunk.ts'
import { bestRows, dotProducts, type ChunkRange } from '#shared/search/vectors/best-rows.ts'
import { clampCosine, rescoreMax, type Codec } from '#shared/search/vectors/codec.ts'

/** The best rows of a scan, and how near they are. */
export type NearestRows = { rows: Uint32Array; cosines: Float32Array }

/** A matrix of unit vectors, row after row, that can be scanned over any range of rows. */
export type VectorMatrix = {
  readonly count: number
  readonly bytes: number
  /** `places`: row numbers before the insertion, ascending; `count` means behind the last. */
  insert(places: readonly number[], vectors: readonly Float32Array[]): void
  replace(row: number, vector: Float32Array): void
  /** Rows ascending, each once. */
  remove(rows: readonly number[]): void
  /** The best `k` rows of [first, end), best first; of equals the later one first. */
  nearest(vector: Float32Array, k: number, first: number, end: number): NearestRows
  /** The best `k` rows of [first, end) by first sight alone, best first. */
  approximateNearest(vector: Float32Array, k: number, first: number, end: number): Uint32Array
  /** The cosines of some rows by first sight, in their order: off by 0.0003 on average. */
  approximateCosines(vector: Float32Array, rows: ArrayLike<number>): Float32Array
  /** Always by second look. */
  cosines(vector: Float32Array, rows: ArrayLike<number>): Float32Array
  /** Gives back the room kept for growing. */
  trim(): void
}

/**
 * First sight errs by 0.0003, and sketches may leave a row out that is barely among those asked for:
 * so many more are found before the best are named.
 */
const overfetch = 40

/** How many of the best get the second look; 0.6 µs each, and further down nobody compares. */
const rescoreCount = 64

/**
 * Rows live in chunks: growing, inserting and removing move at most a few
 * megabytes each, and no buffer is ever twice as large as its rows.
 */
export function createVectorMatrix(codec: Codec): VectorMatrix {
  let chunks: VectorChunk[] = []
  /** First row of each chunk, and behind them the number of rows. */
  let starts: number[] = [0]

  function replaceChunks(next: VectorChunk[]) {
    chunks = next
    starts = [0]
    for (const chunk of chunks) starts.push(starts.at(-1)! + chunk.count)
  }

  function chunkIndexAt(row: number): number {
    let low = 0
    let high = chunks.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if (starts[middle]! <= row) low = middle
      else high = middle - 1
    }
    return low
  }

  function rescoredCosines(vector: Float32Array, rows: ArrayLike<number>): Float32Array {
    const cosines = new Float32Array(rows.length)
    for (let done = 0; done < rows.length; done += rescoreMax) {
      const count = Math.min(rescoreMax, rows.length - done)
      for (let stagedRow = 0; stagedRow < count; stagedRow++) {
        const row = rows[done + stagedRow]!
        const c = chunkIndexAt(row)
        codec.stageRow(chunks[c]!.rows, row - starts[c]!, stagedRow)
      }
      codec.rescore(vector, count, cosines.subarray(done, done + count))
    }
    return cosines
  }

  /** Products as cosines, in place. */
  function toCosines(rows: ArrayLike<number>, products: Float32Array, unit: number): Float32Array {
    for (let i = 0; i < products.length; i++) {
      const c = chunkIndexAt(rows[i]!)
      const scale = chunks[c]!.rows.scales[rows[i]! - starts[c]!] ?? 1
      products[i] = clampCosine(products[i]! * scale * unit)
    }
    return products
  }

  function chunkRangesIn(first: number, end: number): ChunkRange[] {
    const ranges: ChunkRange[] = []
    for (let c = chunkIndexAt(first); c < chunks.length && starts[c]! < end; c++) {
      const chunk = chunks[c]!
      const start = starts[c]!
      const from = Math.max(0, first - start)
      ranges.push({ chunk, from, to: Math.min(chunk.count, end - start), rowOffset: start })
    }
    return ranges
  }

  return {
    get count() {
      return starts.at(-1)!
    },
    get bytes() {
      return chunks.reduce((sum, chunk) => sum + chunkBytes(chunk), 0)
    },

    insert(positions, vectors) {
      if (chunks.length === 0) replaceChunks([createVectorChunk(codec, 0)])
      const next: VectorChunk[] = []
      let done = 0
      for (let c = 0; c < chunks.length; c++) {
        const chunk = chunks[c]!
        const end = c === chunks.length - 1 ? Number.POSITIVE_INFINITY : starts[c + 1]!
        let until = done
        while (until < positions.length && positions[until]! < end) until++
        const own = positions.slice(done, until).map(stagedRow => stagedRow - starts[c]!)
        next.push(...insertAndSplit(codec, chunk, own, vectors.slice(done, until)))
        done = until
      }
      replaceChunks(next)
    },

    replace(row, vector) {
      const c = chunkIndexAt(row)
      replaceRow(codec, chunks[c]!, row - starts[c]!, vector)
    },

    remove(rows) {
      let done = 0
      for (let c = 0; c < chunks.length && done < rows.length; c++) {
        let until = done
        while (until < rows.length && rows[until]! < starts[c + 1]!) until++
        const own = rows.slice(done, until).map(row => row - starts[c]!)
        if (own.length > 0) removeRows(codec, chunks[c]!, own)
        done = until
      }
      replaceChunks(mergeSmallChunks(codec, chunks))
    },

    nearest(vector, k, first, end) {
      const searchCount = Math.min(end - first, k + overfetch)
      if (k <= 0 || searchCount <= 0)
        return { rows: new Uint32Array(0), cosines: new Float32Array(0) }
      const ranges = chunkRangesIn(first, end)
      const query = codec.encodeQuery(vector)
      const { rows, dots } = bestRows(codec, ranges, query, searchCount)
      const cosines = toCosines(rows, dots, query.unit)
      cosines.set(rescoredCosines(vector, rows.subarray(0, rescoreCount)))
      return sortByCosine(rows, cosines, k)
    },

    approximateNearest(vector, k, first, end) {
      const searchCount = Math.min(end - first, k)
      if (searchCount <= 0) return new Uint32Array(0)
      return bestRows(codec, chunkRangesIn(first, end), codec.encodeQuery(vector), searchCount).rows
    },

    approximateCosines(vector, rows) {
      const query = codec.encodeQuery(vector)
      const rowAt = (index: number) => {
        const c = chunkIndexAt(rows[index]!)
        return { chunk: chunks[c]!, row: rows[index]! - starts[c]! }
      }
      return toCosines(rows, dotProducts(codec, rows.length, rowAt, query), query.unit)
    },

    cosines: rescoredCosines,

    trim() {
      for (const chunk of chunks) {
        resizeChunk(codec, chunk, chunk.count)
        prefilterOf(codec, chunk)
      }
    },
  }
}

/** A chunk with vectors inserted, in as many chunks as that takes. */
function insertAndSplit(
  codec: Codec,
  chunk: VectorChunk,
  positions: readonly number[],
  vectors: readonly Float32Array[],
): VectorChunk[] {
  if (vectors.length === 0) return [chunk]
  // Newest rows fill a chunk before the next one begins; only history is cut in even pieces.
  const appending = positions[0] === chunk.count
  const fitting = appending ? Math.min(vectors.length, chunkRowsMax - chunk.count) : vectors.length
  insertRows(codec, chunk, positions.slice(0, fitting), vectors.slice(0, fitting))
  if (fitting < vectors.length) {
    const behind = vectors.slice(fitting)
    return [
      chunk,
      ...insertAndSplit(
        codec,
        createVectorChunk(codec, 0),
        behind.map(() => 0),
        behind,
      ),
    ]
  }
  if (chunk.count <= chunkRowsMax) return [chunk]

  const chunkCount = Math.ceil(chunk.count / chunkRowsMax)
  const size = Math.ceil(chunk.count / chunkCount)
  return Array.from({ length: chunkCount }, (_, chunkNumber) =>
    copyChunk(codec, chunk, chunkNumber * size, Math.min(chunk.count, (chunkNumber + 1) * size)),
  )
}

/** Chunks that removals left nearly empty are joined, so that a scan does not pay for each. */
function mergeSmallChunks(codec: Codec, chunks: readonly VectorChunk[]): VectorChunk[] {
  const kept: VectorChunk[] = []
  for (const chunk of chunks) {
    const before = kept.at(-1)
    if (chunk.count === 0) continue
    if (before && before.count + chunk.count <= chunkRowsMax / 2) {
      kept[kept.length - 1] = joinChunks(codec, before, chunk)
    } else {
      kept.push(chunk)
    }
  }
  return kept
}

/** The best `k`, of equals the later row first. */
function sortByCosine(rows: Uint32Array, cosines: Float32Array, k: number): NearestRows {
  const order = Array.from(rows.keys())
  order.sort((a, b) => cosines[b]! - cosines[a]! || rows[b]! - rows[a]!)
  const best = Uint32Array.from(order.slice(0, k))
  return { rows: best.map(i => rows[i]!), cosines: Float32Array.from(best, i => cosines[i]!) }
}
