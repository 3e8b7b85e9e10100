import type { Embedder } from '#shared/domain/embedder.ts'
import type { VaultScope } from '#shared/domain/memory.ts'
import { mergeRankings, type recall } from '#shared/vault/read/search/recall.ts'
import {
  sharedPage,
  sharedVectors,
  type SharedFilter,
  type SharedPosition,
} from '#shared/org/memories/shared-lists.mongo.ts'
import {
  pendingPartition,
  sharedByIds,
  type SharedMemory,
} from '#shared/org/memories/shared-memories.mongo.ts'
import { unrestricted } from '#shared/domain/visibility.ts'
import { openSharedEmbedders, undefinedIfUnavailable } from '#shared/vault/base/shared-embedders.ts'
import { putInSlices } from '#shared/search/index/load-index.ts'
import { createVaultIndex, type VaultIndex } from '#shared/search/index/vault-index.ts'
import { rankInTurns } from '#shared/search/ranking/rank.ts'
import type { SearchHit } from '#shared/search/ranking/search-hits.ts'
import { termsOf } from '#shared/search/words/index-terms.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import { readPage, type CursorCodec, type Page, type PageRequest } from '#shared/core/page.ts'

export type SharedMemoryQuery = SharedFilter & {
  /** Ranks by it; newest first without. */
  q: string | undefined
  limit: number
  cursor: string | undefined
}

type ListBackend = Parameters<typeof recall>[0] & { mongo: Mongo; cursors: CursorCodec }

/**
 * Reads a page of an organization's shared memories for its admin: newest first, or nearest to a query, then 500 at
 * most.
 *
 * @throws Refusal `invalid` for a cursor of another list; `upstream` when the embedding model does not answer;
 *   `unavailable`.
 */
export async function listSharedMemories(
  backend: ListBackend,
  scope: VaultScope & { space: string | null },
  question: SharedMemoryQuery,
): Promise<Page<SharedMemory>> {
  const { q, tag, author, reviewed, condition, cursor, limit } = question
  const filters = [tag, author, reviewed, q, condition].map(value => value ?? null)
  const cursorBinding = ['shared', scope.vault, scope.epoch, ...filters]
  const page = { limit, cursor, bound: cursorBinding }
  if (q !== undefined && q.trim() !== '')
    return rankedPage(backend, scope, { ...question, q }, page)
  return readPage(
    backend.cursors,
    page,
    (after: SharedPosition | undefined, count) =>
      sharedPage(backend.mongo, scope, { ...question, after, count }),
    ({ acquiredAt, id }): SharedPosition => [acquiredAt, id],
  )
}

/** The position in a ranking is a count of rows. */
async function rankedPage(
  backend: ListBackend,
  scope: VaultScope & { space: string | null },
  question: SharedMemoryQuery & { q: string },
  page: PageRequest,
): Promise<Page<SharedMemory>> {
  const { rows, next } = await readPage(
    backend.cursors,
    page,
    async (start: number = 0, count) => {
      const ranked = await rankByQuery(backend, scope, question, start + count)
      return ranked.slice(start).map((memory, index) => ({ memory, position: start + index + 1 }))
    },
    row => row.position,
  )
  return { rows: rows.map(({ memory }) => memory), next }
}

const rankedMax = 500

type RankedQuestion = SharedFilter & {
  q: string
  /** Leaves out what has nothing to do with the question. */
  relevantOnly?: boolean
}

/** The memories of a shared vault that are nearest to a question, of those that a filter lets through. */
export async function rankByQuery(
  backend: ListBackend,
  { space, ...scope }: VaultScope & { space: string | null },
  question: RankedQuestion,
  count: number,
): Promise<SharedMemory[]> {
  const limit = Math.min(rankedMax, count)
  const input = { scope, question, limit }
  const [current, ...former] = await openSharedEmbedders(backend, space)
  const rankings = await Promise.all([
    rankWithEmbedder(backend, current, input),
    ...former.map(one => undefinedIfUnavailable(rankWithEmbedder(backend, one, input))),
  ])
  const ranked = mergeRankings(
    rankings.flatMap(rows => rows ?? []),
    'relevance',
  )
  const ids = ranked.slice(0, limit).map(({ memory }) => memory.id)
  const sessions = [question.pending ? pendingPartition : '']
  const found = await sharedByIds(backend.mongo, scope, ids, sessions)
  const rows = new Map(found.map(row => [row.id, row]))
  return ids.flatMap(id => rows.get(id) ?? [])
}

async function rankWithEmbedder(
  backend: ListBackend,
  embedder: Embedder,
  input: { scope: VaultScope; question: RankedQuestion; limit: number },
): Promise<SearchHit[]> {
  const { scope, question, limit } = input
  const vector = await backend.queryVectors.embed(embedder, question.q)
  const openIndexes = async () => [await openIndex(backend, scope, question, { embedder, vector })]
  return rankInTurns(openIndexes, [{ text: question.q, vector, kind: 'whole' }], {
    now: backend.now(),
    limit,
    floor: question.relevantOnly ?? false,
    calibration: embedder.calibration,
  })
}

/** With a filter, the newest of its memories are ranked: as many as a process reads in time. */
const filteredMax = 20_000
const candidatesMax = 2_000

async function openIndex(
  { mongo, vaultIndexes, nearest }: ListBackend,
  scope: VaultScope,
  filter: SharedFilter,
  { embedder, vector }: { embedder: { space: string; dimension: number }; vector: Float32Array },
): Promise<VaultIndex> {
  const { space, dimension } = embedder
  const { tag, author, reviewed, condition, pending } = filter
  if ([tag, author, reviewed, condition, pending].every(value => value === undefined)) {
    const ref = { scope, session: null, space, dimension, audience: unrestricted }
    const index = await vaultIndexes.get(ref)
    if (index !== 'too-large') return index
    const partition = { session: null, sessionEpoch: 0 }
    const partial = createVaultIndex({ dimension, termsOf })
    const asked = { partition, space, vector, count: candidatesMax }
    await putInSlices(partial, await nearest.candidates(scope, asked))
    return partial
  }
  const index = createVaultIndex({ dimension, termsOf })
  const rows = await Array.fromAsync(
    sharedVectors(mongo, scope, { ...filter, space, max: filteredMax }),
  )
  await putInSlices(index, rows)
  return index
}
