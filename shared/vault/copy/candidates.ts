import type { Calibration, Embedder } from '#shared/domain/embedder.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { Caller } from '#shared/access/caller.ts'
import type { EmbeddedMemory, Memory } from '#shared/domain/memory.ts'
import { rawCoreMemories } from '#shared/vault/copy/copies.mongo.ts'
import { cosineTo } from '#shared/vault/read/nearest-ranking.mongo.ts'
import type { VaultIndex } from '#shared/search/index/vault-index.ts'
import { scoreFromCosine } from '#shared/search/ranking/calibrated-score.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import type { VaultIndexes } from '#shared/search/index/vault-indexes.ts'
import type { MemoryStore } from '#shared/vault/base/memories.mongo.ts'
import type { QueryVectorCache } from '#shared/search/query/query-vector-cache.ts'

/** Memories of one transfer. */
const transferMax = 10_000

/**
 * Every raw core memory of the caller's vault in the embedder's space, oldest first.
 *
 * @throws Refusal `too-large` when there are more than 10,000; `unavailable`.
 */
export async function transferCandidates(
  { mongo }: { mongo: Mongo },
  { scope }: Caller,
  { space }: Embedder,
): Promise<Memory[]> {
  const memories = await rawCoreMemories(mongo, scope, space, transferMax + 1)
  if (memories.length <= transferMax) return memories
  throw new Refusal(
    'too-large',
    `The source holds more than ${transferMax} core memories; nothing was copied`,
    'POST /v1/memory/graft copies those that match a query',
  )
}

export type Match = {
  memory: Memory
  /** The score for its best query, as a search returns it: 0 to 1, four digits. */
  score: number
}

/**
 * Every raw core memory of the caller's vault whose score for one of the queries reaches the threshold,
 * best first. All memories are compared: in the vault's index, or, when the vault is too large for that, as
 * the database streams them.
 *
 * @throws Refusal `upstream` when the embedding model does not answer, `unavailable`.
 */
export async function graftCandidates(
  backend: { vaultIndexes: VaultIndexes; memories: MemoryStore; queryVectors: QueryVectorCache },
  { scope }: Caller,
  { embedder, queries, threshold }: { embedder: Embedder; queries: string[]; threshold: number },
): Promise<Match[]> {
  const vectors = await embedQueries(backend, embedder, [...new Set(queries)])
  const { space, dimension, calibration } = embedder
  const matches = new Map<string, Match>()
  const addMatch = (memory: Memory, score: number): void => {
    const known = matches.get(memory.id)
    if (!known || known.score < score) matches.set(memory.id, { memory, score })
  }

  const vaultIndex = await backend.vaultIndexes.get({ scope, session: null, space, dimension })
  if (vaultIndex === 'too-large') {
    const measure = bestScoreOf(vectors, calibration)
    await backend.memories.stream(scope, { session: null, sessionEpoch: 0 }, space, rows => {
      for (const row of rows) {
        const score = row.tier === 1 ? measure(row) : -1
        if (score >= threshold) addMatch(withoutVector(row), score)
      }
    })
  } else {
    for (const vector of vectors) {
      matchVaultIndex(vaultIndex, vector, { calibration, threshold, addMatch })
      // A scan blocks the event loop for a microsecond per memory; other requests run between two queries.
      await new Promise(resolve => setImmediate(resolve))
    }
  }
  return [...matches.values()].sort(
    (a, b) => b.score - a.score || compareByEventTime(a.memory, b.memory),
  )
}

/** The order of transfer candidates: by event time, then id. */
export const compareByEventTime = (a: Memory, b: Memory): number =>
  a.at - b.at || (a.id < b.id ? -1 : 1)

/** Concurrent calls to a provider. */
const queryConcurrency = 8

async function embedQueries(
  { queryVectors }: { queryVectors: QueryVectorCache },
  embedder: Embedder,
  queries: readonly string[],
): Promise<Float32Array[]> {
  const vectors: Float32Array[] = []
  for (let start = 0; start < queries.length; start += queryConcurrency) {
    const batch = queries.slice(start, start + queryConcurrency)
    vectors.push(...(await Promise.all(batch.map(text => queryVectors.embed(embedder, text)))))
  }
  return vectors
}

/** Rows of an index keep their numbers only until the next await, so this must not await. */
function matchVaultIndex(
  { byTier }: VaultIndex,
  vector: Float32Array,
  {
    calibration,
    threshold,
    addMatch,
  }: {
    calibration: Calibration
    threshold: number
    addMatch: (memory: Memory, score: number) => void
  },
): void {
  const block = byTier[1]
  const rows = Uint32Array.from({ length: block.count }, (_, row) => row)
  const cosines = block.cosines(vector, rows)
  for (const row of rows) {
    const score = roundScore(scoreFromCosine(cosines[row]!, calibration))
    if (score >= threshold) addMatch(block.memory(row), score)
  }
}

function bestScoreOf(
  vectors: readonly Float32Array[],
  calibration: Calibration,
): (row: EmbeddedMemory) => number {
  const cosines = vectors.map(vector => cosineTo(vector))
  return ({ vector }) =>
    roundScore(scoreFromCosine(Math.max(...cosines.map(cosine => cosine(vector))), calibration))
}

const roundScore = (score: number): number => Math.round(score * 10_000) / 10_000

function withoutVector(row: EmbeddedMemory): Memory {
  const { vector: _, ...memory } = row
  return memory
}
