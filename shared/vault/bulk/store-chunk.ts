import type { PlannedMemory } from '#shared/domain/file-types.ts'
import { buildImportItems } from '#shared/vault/bulk/import-lines.ts'
import {
  readStoredStates,
  planItems,
  type BulkItem,
  type PlannedItem,
} from '#shared/vault/bulk/plan-items.ts'
import { finalizeStoredChunk } from '#shared/vault/bulk/finalize-chunk.ts'
import { buildUploadItems } from '#shared/vault/bulk/upload-lines.ts'
import type { Embedder } from '#shared/domain/embedder.ts'
import { Refusal } from '#shared/core/errors.ts'
import { memoryIdOf } from '#shared/core/ids.ts'
import {
  scheduleExpiry,
  applyCurrentRetention,
  cancelScheduledExpiry,
} from '#shared/vault/base/apply-retention.ts'
import {
  insertIfIdFree,
  replaceStored,
  type RestoredMemory,
} from '#shared/vault/bulk/memories.mongo.ts'
import {
  updatePlan,
  findBulkChunk,
  savePlan,
  type BulkChunk,
} from '#shared/vault/bulk/chunks.postgres.ts'
import type { FileChunkJob } from '#shared/domain/job-payloads.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { MemoryStore } from '#shared/vault/base/memories.mongo.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { ExpiryPurger } from '#shared/vault/base/expiry-purger.ts'

type StoreChunkBackend = Stores & {
  memories: MemoryStore
  embedders: Embedders
  queue: Queue
  expiry: ExpiryPurger
}

const purgeTimeoutMs = 10_000

/**
 * Stores one chunk of a file. Safe to run any number of times, in several processes at once: what
 * becomes of each memory is decided once and kept before the first is written, writes go by those ids,
 * and the chunk is settled once. The last one to be settled ends the operation.
 *
 * @returns false when there is nothing left of the chunk: it was settled, or its vault was cleared.
 * @throws Refusal `upstream` when embedding fails, `unavailable` when a store is out of reach.
 */
export async function storeChunk(
  backend: StoreChunkBackend,
  { file, n }: FileChunkJob,
  signal?: AbortSignal,
): Promise<boolean> {
  const { query } = backend.postgres
  const chunk = await findBulkChunk(query, file, n)
  if (!chunk) return false
  // A line is not there already when what is there is over.
  if (!(await backend.expiry.purgeExpired(chunk.vault, purgeTimeoutMs))) {
    throw new Refusal('unavailable', 'Memories that are over are still being removed')
  }
  const embedder = await backend.embedders.get(chunk.model)
  const items =
    chunk.kind === 'upload'
      ? await buildUploadItems(backend, chunk)
      : await buildImportItems(backend, chunk, embedder)
  const plan = await loadOrCreatePlan(backend, chunk, items)
  const plannedItems = items.map((item, index): PlannedItem => ({ ...item, planned: plan[index]! }))
  const isRetry = chunk.plan !== null
  const written = plannedItems.filter(({ planned }) => planned.as !== 'skip')
  const work = { operation: memoryIdOf(chunk.operation, n), vault: chunk.vault }
  const memories = written.map(({ memory }) => memory)
  const announced = await scheduleExpiry(backend, [{ ...work, memories }])
  await writeMemories(backend, chunk, { decided: plannedItems, embedder, isRetry, signal })
  await applyCurrentRetention(backend, query, {
    ...chunk,
    ids: written.map(({ planned }) => planned.id),
    // An earlier run may have written under another.
    days: isRetry ? undefined : chunk.retentionDays,
  })
  await finalizeStoredChunk(backend, chunk, plannedItems)
  await cancelScheduledExpiry(backend, announced)
  return true
}

/** The plan an earlier run has kept, else a new one. */
async function loadOrCreatePlan(
  backend: StoreChunkBackend,
  chunk: BulkChunk,
  items: readonly BulkItem[],
): Promise<PlannedMemory[]> {
  // Another version of the program may cut lines into other pieces.
  if (chunk.plan?.length === items.length) return chunk.plan
  const plan = await planItems(backend, chunk, items, chunk)
  const kept = await savePlan(backend.postgres.query, chunk, plan)
  if (kept.length === items.length) return kept
  await updatePlan(backend.postgres.query, chunk, plan)
  return plan
}

type ChunkWrite = {
  decided: PlannedItem[]
  embedder: Embedder
  /** An earlier run may have written some. */
  isRetry: boolean
  signal: AbortSignal | undefined
}

async function writeMemories(
  backend: StoreChunkBackend,
  chunk: BulkChunk,
  { decided, embedder, isRetry, signal }: ChunkWrite,
): Promise<void> {
  const wanted = decided.filter(({ planned }) => planned.as !== 'skip')
  const added = wanted.filter(({ planned }) => planned.as === 'new')
  const existing = isRetry
    ? await readItemStates(backend, chunk, added)
    : new Map<string, unknown>()
  const missing = wanted.filter(({ planned }) => !existing.has(planned.id))
  await embedMissing(missing, embedder, signal)

  let open = missing.filter(({ planned }) => planned.as === 'new')
  while (open.length > 0) {
    const takenIds = new Set(
      await insertIfIdFree(backend.mongo, open.map(toRestoredMemory), embedder.space),
    )
    open = await resolveTakenIds(
      backend,
      chunk,
      open.filter(({ planned }) => takenIds.has(planned.id)),
    )
    if (open.length > 0) await updatePlan(backend.postgres.query, chunk, toPlan(decided))
  }
  const replacing = wanted.filter(({ planned }) => planned.as === 'replace').map(toRestoredMemory)
  await replaceStored(backend.mongo, replacing, embedder.space)
}

/**
 * What to do where an id was taken: a memory of another operation that is there by now is the same one
 * and is skipped; one of ours was written by an earlier run; and an id that this vault has nothing under
 * is another vault's, so that the next one is tried.
 *
 * @returns those to be tried again, under another id.
 */
async function resolveTakenIds(
  backend: StoreChunkBackend,
  chunk: BulkChunk,
  taken: readonly PlannedItem[],
): Promise<PlannedItem[]> {
  if (taken.length === 0) return []
  const states = await readItemStates(backend, chunk, taken)
  return taken.filter(({ planned }) => {
    const state = states.get(planned.id)
    if (state?.isLive && state.operation !== chunk.operation) planned.as = 'skip'
    if (state) return false
    if (planned.next === undefined) {
      planned.as = 'skip'
      return false
    }
    planned.id = planned.next
    delete planned.next
    return true
  })
}

const readItemStates = (
  backend: StoreChunkBackend,
  chunk: BulkChunk,
  items: readonly PlannedItem[],
) =>
  readStoredStates(
    backend,
    chunk,
    items.map(({ planned }) => planned.id),
  )

/** Fills in the vectors that the file did not bring. */
async function embedMissing(
  items: readonly PlannedItem[],
  embedder: Embedder,
  signal: AbortSignal | undefined,
): Promise<void> {
  const bare = items.filter(({ vector }) => !vector)
  const texts = bare.map(({ memory }) => memory.text)
  const vectors = texts.length > 0 ? await embedder.embedTexts(texts, signal) : []
  bare.forEach((item, index) => (item.vector = vectors[index]!))
}

const toRestoredMemory = ({ memory, vector, planned }: PlannedItem): RestoredMemory => ({
  ...memory,
  id: planned.id,
  vector: vector!,
})

const toPlan = (decided: readonly PlannedItem[]): PlannedMemory[] =>
  decided.map(({ planned }) => planned)
