import type { Embedder } from '#shared/domain/embedder.ts'
import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import type { Caller } from '#shared/access/caller.ts'
import type { Condition } from '#shared/domain/condition.ts'
import type { Memory } from '#shared/domain/memory.ts'
import { rawCoreMemories } from '#shared/vault/copy/copies.mongo.ts'
import { indexableRows, putInSlices } from '#shared/search/index/load-index.ts'
import { createVaultIndex, type VaultIndex } from '#shared/search/index/vault-index.ts'
import { spansOf } from '#shared/search/index/spans.ts'
import { rankInTurns } from '#shared/search/ranking/rank.ts'
import type { EmbeddedQuestion } from '#shared/search/ranking/rank-question.ts'
import { queryLengthMax } from '#shared/search/query/parse-query.ts'
import { defaultWeights } from '#shared/search/ranking/signals.ts'
import { termsOf } from '#shared/search/words/index-terms.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import type { VaultIndexes } from '#shared/search/index/vault-indexes.ts'
import type { MemoryStore } from '#shared/vault/base/memories.mongo.ts'
import type { QueryVectorCache } from '#shared/search/query/query-vector-cache.ts'

/** Memories of one transfer. */
const transferMax = 10_000

/**
 * Every raw core memory of the caller's vault in the embedder's space that meets a condition, oldest first.
 *
 * @throws Refusal `too-large` when there are more than 10,000; `unavailable`.
 */
export async function transferCandidates(
  { mongo }: { mongo: Mongo },
  { scope }: Caller,
  { space }: Embedder,
  condition?: Condition,
): Promise<Memory[]> {
  const max = transferMax + 1
  const memories = await rawCoreMemories(mongo, scope, space, { max, condition })
  if (memories.length <= transferMax) return memories
  throw refusal('too-large', 'sourceTooLarge', { transferMax })
}

export type Match = {
  memory: Memory
  /** The score for its best query, 0 to 1, four digits; that of a search without related words. */
  score: number
}

/** Characters of all queries that are read: 0.4 s of CPU for the vectors of as many words that no vault knows. */
const readCharactersMax = 50_000

/** Queries as far as they are read: the first 16,000 characters of one, and in equal parts 50,000 of all. */
export function readQueries(queries: readonly string[]): string[] {
  const lengthMax = Math.min(queryLengthMax, Math.floor(readCharactersMax / queries.length))
  return [...new Set(queries.map(query => query.slice(0, lengthMax)))]
}

/** What is copied has the meaning or the words of a query: neither the turns around it nor related words count. */
const copyWeights = { ...defaultWeights, related: 0, contextWords: 0, contextSimilarity: 0 }

/** Rows of a vault without an index in memory that are ranked together. */
const streamedRowsMax = 2_000

/**
 * Every raw core memory of the caller's vault whose score for one of the queries reaches the threshold, best
 * first. All are ranked: in the vault's index, or in slices as the database streams them when the vault is too
 * large; a slice weighs words among its own rows.
 *
 * @throws Refusal `upstream` when the embedding model does not answer, `unavailable` also when the vault
 *   outgrows the memory for indexes meanwhile; the reason of `signal` once it has aborted.
 */
export async function graftCandidates(
  backend: GraftBackend,
  { scope }: Caller,
  { embedder, queries, threshold, condition, signal }: GraftQuestion,
): Promise<Match[]> {
  const questions = await embedQueries(backend, { embedder, queries: readQueries(queries), signal })
  const { space, dimension, calibration } = embedder
  const matches = new Map<string, Match>()
  const rankAll = async (openIndex: () => Promise<VaultIndex>): Promise<void> => {
    const spans = spansOf([await openIndex()])
    for (const [question, span] of questions.flatMap(one =>
      spans.map(span => [one, span] as const),
    )) {
      signal.throwIfAborted()
      const openIndexes = async () => [await openIndex()]
      const found = await rankInTurns(openIndexes, [question], {
        now: backend.now(),
        limit: Infinity,
        floor: false,
        everyRow: true,
        wholeText: question.text,
        tiers: [1],
        condition,
        calibration,
        weights: copyWeights,
        ...span,
      })
      for (const { memory, score: exact } of found) {
        const score = roundScore(exact)
        const known = matches.get(memory.id)
        if (score >= threshold && !(known && known.score >= score))
          matches.set(memory.id, { memory, score })
      }
    }
  }

  const ref = { scope, session: null, space, dimension }
  if ((await backend.vaultIndexes.get(ref)) === 'too-large') {
    let index = createVaultIndex({ dimension, termsOf })
    await backend.memories.stream(scope, { session: null, sessionEpoch: 0 }, space, async rows => {
      await putInSlices(index, indexableRows(rows, dimension))
      if (index.byTier[1].count < streamedRowsMax) return
      await rankAll(async () => index)
      index = createVaultIndex({ dimension, termsOf })
    })
    await rankAll(async () => index)
  } else {
    await rankAll(async () => {
      const index = await backend.vaultIndexes.get(ref)
      if (index !== 'too-large') return index
      const hint = 'Send the request again: it is read from the database then'
      throw new Refusal('unavailable', 'The vault grew beyond the memory for indexes', hint)
    })
  }
  return [...matches.values()].sort(
    (a, b) => b.score - a.score || compareByEventTime(a.memory, b.memory),
  )
}

type GraftBackend = {
  vaultIndexes: VaultIndexes
  memories: MemoryStore
  queryVectors: QueryVectorCache
  now: () => number
}

type GraftQuestion = {
  embedder: Embedder
  queries: readonly string[]
  threshold: number
  condition?: Condition | undefined
  /** Ends the work. */
  signal: AbortSignal
}

/** The order of transfer candidates: by event time, then id. */
export const compareByEventTime = (a: Memory, b: Memory): number =>
  a.at - b.at || (a.id < b.id ? -1 : 1)

/** Concurrent calls to a provider. */
const queryConcurrency = 8

async function embedQueries(
  { queryVectors }: Pick<GraftBackend, 'queryVectors'>,
  { embedder, queries, signal }: Pick<GraftQuestion, 'embedder' | 'queries' | 'signal'>,
): Promise<EmbeddedQuestion[]> {
  const questions: EmbeddedQuestion[] = []
  for (let start = 0; start < queries.length; start += queryConcurrency) {
    signal.throwIfAborted()
    const batch = queries.slice(start, start + queryConcurrency).map(async text => {
      return { text, kind: 'whole' as const, vector: await queryVectors.embed(embedder, text) }
    })
    questions.push(...(await Promise.all(batch)))
  }
  return questions
}

const roundScore = (score: number): number => Math.round(score * 10_000) / 10_000
