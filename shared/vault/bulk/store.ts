import type { Planned } from '#shared/domain/file-lines.ts'
import { importedItems } from '#shared/vault/bulk/import.ts'
import { livingStandings, planOf, type Item, type Decided } from '#shared/vault/bulk/plan.ts'
import { settleStoredChunk } from '#shared/vault/bulk/settle.ts'
import { uploadedItems } from '#shared/vault/bulk/upload.ts'
import type { Embedder } from '#shared/domain/embedder.ts'
import { Refusal } from '#shared/core/errors.ts'
import { memoryIdOf } from '#shared/core/ids.ts'
import { announceEnds, keepToPolicy, withdrawEnds } from '#shared/vault/base/retention-on-write.ts'
import {
  insertWhereFree,
  replaceStanding,
  type RestoredMemory,
} from '#shared/vault/bulk/memories.mongo.ts'
import { amendPlan, findChunk, keepPlan, type Chunk } from '#shared/vault/bulk/chunks.postgres.ts'
import type { FileJob } from '#shared/domain/job-payloads.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Memories } from '#shared/vault/base/memories.mongo.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { Expiry } from '#shared/vault/base/expiry-purger.ts'

type Storing = Stores & { memories: Memories; embedders: Embedders; queue: Queue; expiry: Expiry }

const overWithinMs = 10_000

/**
 * Stores one chunk of a file. Safe to run any number of times, in several processes at once: what
 * becomes of each memory is decided once and kept before the first is written, writes go by those ids,
 * and the chunk is settled once. The last one to be settled ends the operation.
 *
 * @returns false when there is nothing left of the chunk: it was settled, or its vault was cleared.
 * @throws Refusal `upstream` when embedding fails, `unavailable` when a store is out of reach.
 */
export async function storeChunk(
  backend: Storing,
  { file, n }: FileJob,
  signal?: AbortSignal,
): Promise<boolean> {
  const { query } = backend.postgres
  const chunk = await findChunk(query, file, n)
  if (!chunk) return false
  // A line is not there already when what is there is over.
  if (!(await backend.expiry.removeOver(chunk.vault, overWithinMs))) {
    throw new Refusal('unavailable', 'Memories that are over are still being removed')
  }
  const embedder = await backend.embedders.get(chunk.model)
  const items =
    chunk.kind === 'upload'
      ? await uploadedItems(backend, chunk)
      : await importedItems(backend, chunk, embedder)
  const plan = await planFor(backend, chunk, items)
  const decided = items.map((item, index): Decided => ({ ...item, planned: plan[index]! }))
  const again = chunk.plan !== null
  const written = decided.filter(({ planned }) => planned.as !== 'skip')
  const work = { operation: memoryIdOf(chunk.operation, n), vault: chunk.vault }
  const memories = written.map(({ memory }) => memory)
  const announced = await announceEnds(backend, [{ ...work, memories }])
  await write(backend, chunk, { decided, embedder, again, signal })
  await keepToPolicy(backend, query, {
    ...chunk,
    ids: written.map(({ planned }) => planned.id),
    // An earlier run may have written under another.
    days: again ? undefined : chunk.retentionDays,
  })
  await settleStoredChunk(backend, chunk, decided)
  await withdrawEnds(backend, announced)
  return true
}

/** The plan an earlier run has kept, else a new one. */
async function planFor(backend: Storing, chunk: Chunk, items: readonly Item[]): Promise<Planned[]> {
  // Another version of the program may cut lines into other pieces.
  if (chunk.plan?.length === items.length) return chunk.plan
  const plan = await planOf(backend, chunk, items, chunk)
  const kept = await keepPlan(backend.postgres.query, chunk, plan)
  if (kept.length === items.length) return kept
  await amendPlan(backend.postgres.query, chunk, plan)
  return plan
}

type Writing = {
  decided: Decided[]
  embedder: Embedder
  /** An earlier run may have written some. */
  again: boolean
  signal: AbortSignal | undefined
}

async function write(
  backend: Storing,
  chunk: Chunk,
  { decided, embedder, again, signal }: Writing,
): Promise<void> {
  const wanted = decided.filter(({ planned }) => planned.as !== 'skip')
  const added = wanted.filter(({ planned }) => planned.as === 'new')
  const standing = again ? await standingOf(backend, chunk, added) : new Map<string, unknown>()
  const missing = wanted.filter(({ planned }) => !standing.has(planned.id))
  await embed(missing, embedder, signal)

  let open = missing.filter(({ planned }) => planned.as === 'new')
  while (open.length > 0) {
    const taken = new Set(await insertWhereFree(backend.mongo, open.map(memoryOf), embedder.space))
    open = await movedOn(
      backend,
      chunk,
      open.filter(({ planned }) => taken.has(planned.id)),
    )
    if (open.length > 0) await amendPlan(backend.postgres.query, chunk, planIn(decided))
  }
  const replacing = wanted.filter(({ planned }) => planned.as === 'replace').map(memoryOf)
  await replaceStanding(backend.mongo, replacing, embedder.space)
}

/**
 * What to do where an id was taken: a memory of another operation that is there by now is the same one
 * and is skipped; one of ours was written by an earlier run; and an id that this vault has nothing under
 * is another vault's, so that the next one is tried.
 *
 * @returns those to be tried again, under another id.
 */
async function movedOn(
  backend: Storing,
  chunk: Chunk,
  taken: readonly Decided[],
): Promise<Decided[]> {
  if (taken.length === 0) return []
  const standings = await standingOf(backend, chunk, taken)
  return taken.filter(({ planned }) => {
    const standing = standings.get(planned.id)
    if (standing?.living && standing.operation !== chunk.operation) planned.as = 'skip'
    if (standing) return false
    if (planned.next === undefined) {
      planned.as = 'skip'
      return false
    }
    planned.id = planned.next
    delete planned.next
    return true
  })
}

const standingOf = (backend: Storing, chunk: Chunk, items: readonly Decided[]) =>
  livingStandings(
    backend,
    chunk,
    items.map(({ planned }) => planned.id),
  )

/** Fills in the vectors that the file did not bring. */
async function embed(
  items: readonly Decided[],
  embedder: Embedder,
  signal: AbortSignal | undefined,
): Promise<void> {
  const bare = items.filter(({ vector }) => !vector)
  const texts = bare.map(({ memory }) => memory.text)
  const vectors = texts.length > 0 ? await embedder.embedTexts(texts, signal) : []
  bare.forEach((item, index) => (item.vector = vectors[index]!))
}

const memoryOf = ({ memory, vector, planned }: Decided): RestoredMemory => ({
  ...memory,
  id: planned.id,
  vector: vector!,
})

const planIn = (decided: readonly Decided[]): Planned[] => decided.map(({ planned }) => planned)
