import type { Embedder } from '#shared/domain/embedder.ts'
import type { VaultScope } from '#shared/domain/memory.ts'
import { merged } from '#shared/vault/read/recall.ts'
import {
  sharedPage,
  sharedVectors,
  type SharedFilter,
  type SharedPosition,
} from '#shared/org/shared-lists.mongo.ts'
import { sharedByIds, type SharedMemory } from '#shared/org/shared-memories.mongo.ts'
import { everything } from '#shared/domain/visibility.ts'
import { orNothing, sharedEmbedders } from '#shared/vault/base/shared-embedders.ts'
import { createImage, type Image } from '#shared/search/index/vault-index.ts'
import { rank, type Found } from '#shared/search/ranking/rank.ts'
import { termsOf } from '#shared/search/words/words.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import type { Cursors } from '#shared/core/cursor.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { QueryVectors } from '#shared/search/query/query-vectors.ts'
import type { Images } from '#shared/search/index/vault-indexes.ts'
import type { Nearest } from '#shared/vault/read/nearest.ts'

export type SharedQuestion = SharedFilter & {
  /** Ranks by it; newest first without. */
  q: string | undefined
  limit: number
  /** Of the page before. */
  cursor: string | undefined
}

export type SharedPage = {
  rows: SharedMemory[]
  /** Where the next page begins; null when there is none. */
  next: string | null
}

/** A shared vault, and the space that all of it is in. */
export type SharedScope = VaultScope & { space: string | null }

type Listing = {
  mongo: Mongo
  cursors: Cursors
  embedders: Embedders
  queryVectors: QueryVectors
  images: Images
  nearest: Nearest
  now: () => number
}

/**
 * One page of what an organization shares, for its admin: newest first, or those closest to a question,
 * of which 500 are told at most.
 *
 * @throws Refusal `invalid` for a cursor of another list; `upstream` when the embedding model does not
 *   answer; `unavailable` when the memory store is out of reach.
 */
export async function listShared(
  backend: Listing,
  scope: SharedScope,
  question: SharedQuestion,
): Promise<SharedPage> {
  const { q, tag, author, reviewed, cursor, limit } = question
  const filters = [tag, author, reviewed, q].map(value => value ?? null)
  const bound = ['shared', scope.vault, scope.epoch, ...filters]
  const position = cursor === undefined ? undefined : backend.cursors.read(cursor, bound)
  if (q !== undefined && q.trim() !== '') {
    const start = (position as number | undefined) ?? 0
    const rows = await closest(backend, scope, { ...question, q }, start + limit + 1)
    const page = rows.slice(start, start + limit)
    const isMore = rows.length > start + limit
    return { rows: page, next: isMore ? backend.cursors.write(start + limit, bound) : null }
  }
  const after = position as SharedPosition | undefined
  // One more than asked for tells whether there is a next page.
  const rows = await sharedPage(backend.mongo, scope, { ...question, after, count: limit + 1 })
  const page = rows.slice(0, limit)
  const last = rows.length > limit ? page.at(-1) : undefined
  return {
    rows: page,
    next: last ? backend.cursors.write([last.acquiredAt, last.id], bound) : null,
  }
}

const rankedMax = 500

async function closest(
  backend: Listing,
  { space, ...scope }: SharedScope,
  question: SharedQuestion & { q: string },
  count: number,
): Promise<SharedMemory[]> {
  const limit = Math.min(rankedMax, count)
  const asked = { scope, question, limit }
  const [usual, ...former] = await sharedEmbedders(backend, space)
  const rankings = await Promise.all([
    rankBy(backend, usual, asked),
    ...former.map(one => orNothing(rankBy(backend, one, asked))),
  ])
  const found = merged(rankings.flatMap(rows => rows ?? []))
  const ids = found.slice(0, limit).map(({ memory }) => memory.id)
  const rows = new Map((await sharedByIds(backend.mongo, scope, ids)).map(row => [row.id, row]))
  return ids.flatMap(id => rows.get(id) ?? [])
}

async function rankBy(
  backend: Listing,
  embedder: Embedder,
  asked: { scope: VaultScope; question: SharedQuestion & { q: string }; limit: number },
): Promise<Found[]> {
  const { scope, question, limit } = asked
  const vector = await backend.queryVectors.of(embedder, question.q)
  const image = await imageOf(backend, scope, question, { embedder, vector })
  return rank([image], {
    text: question.q,
    vector,
    now: backend.now(),
    limit,
    floor: false,
    calibration: embedder.calibration,
  })
}

/** With a filter only what it lets through is ranked: as many of the newest as a process reads in time. */
const filteredMax = 20_000
const candidatesMax = 2_000

async function imageOf(
  { mongo, images, nearest }: Listing,
  scope: VaultScope,
  filter: SharedFilter,
  { embedder, vector }: { embedder: { space: string; dimension: number }; vector: Float32Array },
): Promise<Image> {
  const { space, dimension } = embedder
  const { tag, author, reviewed } = filter
  if (tag === undefined && author === undefined && reviewed === undefined) {
    const ref = { scope, session: null, space, dimension, audience: everything }
    const image = await images.get(ref)
    if (image !== 'too-large') return image
    const place = { session: null, sessionEpoch: 0 }
    const partial = createImage({ dimension, termsOf })
    partial.put(await nearest.candidates(scope, { place, space, vector, count: candidatesMax }))
    return partial
  }
  const image = createImage({ dimension, termsOf })
  const rows = await Array.fromAsync(
    sharedVectors(mongo, scope, { tag, author, reviewed, space, max: filteredMax }),
  )
  image.put(rows)
  return image
}
