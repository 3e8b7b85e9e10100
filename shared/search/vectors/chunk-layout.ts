import type { Codec } from '#shared/search/vectors/codec.ts'
import {
  chunkRowsMax,
  copyChunk,
  createVectorChunk,
  insertRows,
  joinChunks,
  type VectorChunk,
} from '#shared/search/vectors/vector-chunk.ts'

/** Inserts vectors into a chunk and returns it, split into several where it grew too large. */
export function insertAndSplit(
  codec: Codec,
  chunk: VectorChunk,
  positions: readonly number[],
  vectors: readonly Float32Array[],
): VectorChunk[] {
  if (vectors.length === 0) return [chunk]
  // Appended rows fill a chunk before the next one begins; inserts elsewhere split it evenly.
  const appending = positions[0] === chunk.count
  const fitting = appending ? Math.min(vectors.length, chunkRowsMax - chunk.count) : vectors.length
  insertRows(codec, chunk, positions.slice(0, fitting), vectors.slice(0, fitting))
  if (fitting < vectors.length) {
    const remaining = vectors.slice(fitting)
    const start = remaining.map(() => 0)
    return [chunk, ...insertAndSplit(codec, createVectorChunk(codec, 0), start, remaining)]
  }
  if (chunk.count <= chunkRowsMax) return [chunk]

  const chunkCount = Math.ceil(chunk.count / chunkRowsMax)
  const size = Math.ceil(chunk.count / chunkCount)
  return Array.from({ length: chunkCount }, (_, chunkNumber) =>
    copyChunk(codec, chunk, chunkNumber * size, Math.min(chunk.count, (chunkNumber + 1) * size)),
  )
}

/** Joins neighbours that removals left nearly empty, as every chunk costs a scan of its own. */
export function mergeSmallChunks(codec: Codec, chunks: readonly VectorChunk[]): VectorChunk[] {
  const merged: VectorChunk[] = []
  for (const chunk of chunks) {
    const before = merged.at(-1)
    if (chunk.count === 0) continue
    if (before && before.count + chunk.count <= chunkRowsMax / 2) {
      merged[merged.length - 1] = joinChunks(codec, before, chunk)
    } else {
      merged.push(chunk)
    }
  }
  return merged
}
