import type { Filter } from 'mongodb'
import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { refuseWhenUnreachable, type Mongo } from '#shared/storage/mongo/connect.ts'
import { deadline } from '#shared/storage/mongo/deadline.ts'
import {
  embeddedMemoryFromDocument,
  embeddedMemoryProjection,
  type MemoryDocument,
} from '#shared/storage/mongo/documents.ts'
import { conditionFilter } from '#shared/storage/mongo/condition-filter.ts'
import { partitionFilter } from '#shared/storage/mongo/partition.ts'
import { idIndex, partitionIndex } from '#shared/storage/mongo/indexes.ts'
import type { NearestSearch, NearestQuestion } from '#shared/vault/read/search/nearest.ts'
import type { EmbeddedMemory } from '#shared/domain/memory.ts'

/** Enough for 250,000 rows of 1,536 dimensions: 10,000 take 0.65 to 0.8 s, nearly all of it reading. */
const scanWithinMs = 20_000

/** Batches of 250 to 1,000 rows of 6 KB are equally fast, larger ones slower. */
const batchBytes = 1_500_000
const batchRowsMax = 1_000

/**
 * Searches any MongoDB by reading every vector of the vault space: exact, and in bounded memory (two batches,
 * and the ids of twice the requested rows). Only the nearest rows are then read with all fields.
 *
 * @throws Refusal `unavailable` also when the vault is too large to be read within the time.
 */
export function createNearestScan(
  { memories }: Pick<Mongo, 'memories'>,
  { withinMs = scanWithinMs }: { withinMs?: number } = {},
): NearestSearch {
  return {
    hasIndex: () => false,
    indexed: async () => null,
    async candidates(scope, question) {
      const { partition, space } = question
      const filter: Filter<MemoryDocument> = {
        ...partitionFilter(scope, partition, space),
        ...questionFilter(question),
      }
      const signal = deadline(memories, withinMs)
      try {
        const ids = await nearestIds(memories, { filter, question, signal })
        const rows = await memories
          .find(
            { ...filter, _id: { $in: ids } },
            { projection: embeddedMemoryProjection(space), hint: idIndex, signal },
          )
          .toArray()
        return selectNearest(
          rows.map(row => embeddedMemoryFromDocument(row, space)),
          question,
        )
      } catch (error) {
        // After the deadline the driver fails with many errors, none of which names the deadline.
        const isLate = signal.aborted && !(error instanceof Refusal)
        return refuseWhenUnreachable(isLate ? signal.reason : error)
      }
    },
  }
}

async function nearestIds(
  memories: Mongo['memories'],
  request: {
    filter: Filter<MemoryDocument>
    question: NearestQuestion
    signal: AbortSignal
  },
): Promise<string[]> {
  const {
    filter,
    question: { space, vector, count },
    signal,
  } = request
  const cursor = memories.find(filter, {
    projection: { [`vectors.${space}`]: 1 },
    hint: partitionIndex,
    batchSize: Math.min(batchRowsMax, Math.ceil(batchBytes / vector.byteLength)),
    signal,
  })
  const cosine = cosineTo(vector)
  const nearest = createNearestCollector(count)
  let read = 0
  try {
    for await (const { _id: id, vectors } of cursor) {
      nearest.offer({ id, cosine: cosine(vectors[space]!.toFloat32Array()) })
      read++
    }
  } catch (error) {
    // A server that has sent rows is in reach: the vault is too large for the time.
    if (read > 0 && signal.aborted) throw refusal('unavailable', 'vaultTooLarge')
    throw error
  }
  return nearest.ids()
}

/** Collects the nearest `count` of any number of rows; sorts once per `count` rows collected. */
function createNearestCollector(count: number): { offer(row: CosineRow): void; ids(): string[] } {
  let best: CosineRow[] = []
  let lowestCosine = -Infinity
  const cut = (): void => {
    best = best.toSorted(compareByCosine).slice(0, count)
    if (best.length === count) lowestCosine = best[count - 1]!.cosine
  }
  return {
    offer(row) {
      if (row.cosine < lowestCosine) return
      best.push(row)
      if (best.length >= 2 * count) cut()
    },
    ids() {
      cut()
      return best.map(({ id }) => id)
    },
  }
}

/** The filter of a question without its partition, in operators that a search index supports too. */
export function questionFilter(question: NearestQuestion): Filter<MemoryDocument> {
  const { tiers, importance, condition, from, to } = question
  const at = {
    ...(from !== undefined && { $gte: new Date(from) }),
    ...(to !== undefined && { $lt: new Date(to) }),
  }
  return {
    ...(tiers && { tier: { $in: [...tiers] } }),
    ...(importance !== undefined && { importance: { $gte: importance } }),
    ...(Object.keys(at).length > 0 && { at }),
    ...conditionFilter(condition),
  }
}

/**
 * Cosine similarity to the query, -1 to 1; 0 for a vector of length 0. A plain loop: 3.4 µs at 1,536 dimensions,
 * where reading the row takes 60 µs, so a vector library would save nothing.
 */
function cosineTo(query: Float32Array): (vector: Float32Array) => number {
  const length = Math.hypot(...query)
  return vector => {
    let dot = 0
    let squares = 0
    for (let i = 0; i < vector.length; i++) {
      const value = vector[i]!
      dot += value * query[i]!
      squares += value * value
    }
    return dot / (length * Math.sqrt(squares)) || 0
  }
}

type CosineRow = { id: string; cosine: number }

/** Equally near rows are ordered by id, so that scan and index return the same order. */
const compareByCosine = (a: CosineRow, b: CosineRow): number =>
  b.cosine - a.cosine || (a.id < b.id ? -1 : 1)

/** The nearest rows, best first. */
export function selectNearest(
  rows: readonly EmbeddedMemory[],
  { vector, count }: Pick<NearestQuestion, 'vector' | 'count'>,
): EmbeddedMemory[] {
  const cosine = cosineTo(vector)
  return rows
    .map(row => ({ row, id: row.id, cosine: cosine(row.vector) }))
    .toSorted(compareByCosine)
    .slice(0, count)
    .map(({ row }) => row)
}
