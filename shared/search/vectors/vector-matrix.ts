import type { Steps } from '#shared/core/event-loop.ts'
import {
  chunkBytes,
  copyRow,
  createVectorChunk,
  removeRows,
  replaceRow,
  restoredChunk,
  savedRows,
  resizeChunk,
  prefilterOf,
  prefilterSteps,
  type VectorChunk,
  insertAndSplit,
  mergeSmallChunks,
} from '#shared/search/vectors/vector-chunk.ts'
import { bestRowsForAll, dotProducts, type ChunkRange } from '#shared/search/vectors/best-rows.ts'
import {
  clampCosine,
  queriesMax,
  rescoreMax,
  type Codec,
  type EncodedQuery,
} from '#shared/search/vectors/codec.ts'

/**
 * A matrix of unit vectors with exact scans over any range of rows. Rows are stored in chunks: growing, inserting and
 * removing move a few megabytes at most, and no buffer is more than twice as large as its rows.
 */
export class VectorMatrix {
  readonly #codec: Codec
  #chunks: VectorChunk[] = []
  /** First row of each chunk, then the number of rows. */
  #starts: number[] = [0]

  constructor(codec: Codec) {
    this.#codec = codec
  }

  get count(): number {
    return this.#starts.at(-1)!
  }

  get bytes(): number {
    return this.#chunks.reduce((sum, chunk) => sum + chunkBytes(chunk), 0)
  }

  /** @param positions row numbers before the insertion, ascending; `count` appends */
  insert(positions: readonly number[], vectors: readonly Float32Array[]) {
    const codec = this.#codec
    if (this.#chunks.length === 0) this.#replaceChunks([createVectorChunk(codec, 0)])
    const next: VectorChunk[] = []
    let done = 0
    for (const [c, chunk] of this.#chunks.entries()) {
      const start = this.#starts[c]!
      const end = c === this.#chunks.length - 1 ? Number.POSITIVE_INFINITY : this.#starts[c + 1]!
      let until = done
      while (until < positions.length && positions[until]! < end) until++
      const inChunk = positions.slice(done, until).map(position => position - start)
      next.push(...insertAndSplit(codec, chunk, inChunk, vectors.slice(done, until)))
      done = until
    }
    this.#replaceChunks(next)
  }

  replace(row: number, vector: Float32Array) {
    const c = this.#chunkIndexAt(row)
    replaceRow(this.#codec, this.#chunks[c]!, row - this.#starts[c]!, vector)
  }

  /** Copies the vector of a row to another row. */
  copy(from: number, to: number) {
    const [source, target] = [this.#chunkIndexAt(from), this.#chunkIndexAt(to)]
    copyRow(
      this.#codec,
      { chunk: this.#chunks[source]!, row: from - this.#starts[source]! },
      { chunk: this.#chunks[target]!, row: to - this.#starts[target]! },
    )
  }

  /** @param rows ascending, each once */
  remove(rows: readonly number[]) {
    const codec = this.#codec
    let done = 0
    for (let c = 0; c < this.#chunks.length && done < rows.length; c++) {
      const start = this.#starts[c]!
      let until = done
      while (until < rows.length && rows[until]! < this.#starts[c + 1]!) until++
      const inChunk = rows.slice(done, until).map(row => row - start)
      if (inChunk.length > 0) removeRows(codec, this.#chunks[c]!, inChunk)
      done = until
    }
    this.#replaceChunks(mergeSmallChunks(codec, this.#chunks))
  }

  /**
   * Finds for each vector the best `k` rows of [first, end) by approximate cosine, best first. Up to `queriesMax` vectors
   * are compared in one pass, in steps of a chunk; nothing may change before the last.
   */
  *approximateNearest(
    vectors: readonly Float32Array[],
    k: number,
    first: number,
    end: number,
  ): Steps<Uint32Array[]> {
    const searchCount = Math.min(end - first, k)
    if (searchCount <= 0) return vectors.map(() => new Uint32Array(0))
    const ranges = this.#chunkRangesIn(first, end)
    const found: Uint32Array[] = []
    for (let done = 0; done < vectors.length; done += queriesMax) {
      const queries = vectors
        .slice(done, done + queriesMax)
        .map(vector => copyQuery(this.#codec.encodeQuery(vector)))
      const best = yield* bestRowsForAll(this.#codec, ranges, queries, searchCount)
      found.push(...best.map(({ rows }) => rows))
    }
    return found
  }

  /** Returns cosines of some rows, in their order, with a mean error of 0.0003. */
  approximateCosines(vector: Float32Array, rows: ArrayLike<number>): Float32Array {
    const query = this.#codec.encodeQuery(vector)
    const placeOf = (row: number) => {
      const c = this.#chunkIndexAt(row)
      return { chunk: this.#chunks[c]!, start: this.#starts[c]! }
    }
    return this.#toCosines(rows, dotProducts(this.#codec, rows, placeOf, query), query.unit)
  }

  /** Returns rescored cosines of some rows, in their order. */
  cosines(vector: Float32Array, rows: ArrayLike<number>): Float32Array {
    const codec = this.#codec
    const cosines = new Float32Array(rows.length)
    for (let done = 0; done < rows.length; done += rescoreMax) {
      const count = Math.min(rescoreMax, rows.length - done)
      for (let stagedRow = 0; stagedRow < count; stagedRow++) {
        const row = rows[done + stagedRow]!
        const c = this.#chunkIndexAt(row)
        codec.stageRow(this.#chunks[c]!.rows, row - this.#starts[c]!, stagedRow)
      }
      codec.rescore(vector, count, cosines.subarray(done, done + count))
    }
    return cosines
  }

  /** What `restore` takes. */
  save() {
    return this.#chunks.map(chunk => savedRows(this.#codec, chunk))
  }

  restore(saved: ReturnType<VectorMatrix['save']>) {
    this.#replaceChunks(saved.map(rows => restoredChunk(this.#codec, rows)))
  }

  /** Does the expensive part of `trim` in steps of some milliseconds; nothing may change before the last. */
  *trimSteps(): Generator<void, void, void> {
    for (const chunk of this.#chunks) {
      resizeChunk(this.#codec, chunk, chunk.count)
      yield* prefilterSteps(this.#codec, chunk)
      yield
    }
  }

  /** Frees unused capacity. */
  trim() {
    for (const chunk of this.#chunks) {
      resizeChunk(this.#codec, chunk, chunk.count)
      prefilterOf(this.#codec, chunk)
    }
  }

  #replaceChunks(chunks: VectorChunk[]) {
    const starts = [0]
    for (const chunk of chunks) starts.push(starts.at(-1)! + chunk.count)
    this.#chunks = chunks
    this.#starts = starts
  }

  #chunkIndexAt(row: number): number {
    const starts = this.#starts
    let low = 0
    let high = this.#chunks.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if (starts[middle]! <= row) low = middle
      else high = middle - 1
    }
    return low
  }

  #chunkRangesIn(first: number, end: number): ChunkRange[] {
    const chunks = this.#chunks
    const starts = this.#starts
    const ranges: ChunkRange[] = []
    for (let c = this.#chunkIndexAt(first); c < chunks.length && starts[c]! < end; c++) {
      const chunk = chunks[c]!
      const start = starts[c]!
      const from = Math.max(0, first - start)
      ranges.push({ chunk, from, to: Math.min(chunk.count, end - start), rowOffset: start })
    }
    return ranges
  }

  /** Converts dot products with an encoded query into cosines, in place. */
  #toCosines(rows: ArrayLike<number>, products: Float32Array, unit: number): Float32Array {
    for (let i = 0; i < products.length; i++) {
      const c = this.#chunkIndexAt(rows[i]!)
      const scale = this.#chunks[c]!.rows.scales[rows[i]! - this.#starts[c]!] ?? 1
      products[i] = clampCosine(products[i]! * scale * unit)
    }
    return products
  }
}

/** Copies a query: other searches encode theirs between two steps. */
const copyQuery = ({ values, unit }: EncodedQuery): EncodedQuery => ({
  values: values.slice(),
  unit,
})
