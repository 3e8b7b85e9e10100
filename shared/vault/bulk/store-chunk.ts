import { forgetWrongEmbedder, embedToStore } from '#shared/vault/base/embed-to-store.ts'
import type { PlannedMemory } from '#shared/domain/file-types.ts'
import { buildImportItems } from '#shared/vault/bulk/import-lines.ts'
import {
  readStoredStates,
  planItems,
  idsOf,
  type BulkItem,
  type PlannedItem,
} from '#shared/vault/bulk/plan-items.ts'
import { cutChunk, finalizeStoredChunk } from '#shared/vault/bulk/finalize-chunk.ts'
import { buildUploadItems } from '#shared/vault/bulk/upload-lines.ts'
import type { Embedder } from '#shared/domain/embedder.ts'
import { expiredRemain } from '#shared/core/refusals.ts'
import { memoryIdOf } from '#shared/core/ids.ts'
import {
  applyCurrentRetention,
  withExpiryProtocol,
  type ExpiryPurger,
} from '#shared/vault/base/expiry-protocol.ts'
import {
  insertIfIdFree,
  replaceStored,
  type RestoredMemory,
  type StoredState,
} from '#shared/vault/bulk/memories.mongo.ts'
import { captionPictures, type CaptionBackend } from '#shared/vault/bulk/caption-pictures.ts'
import { confirmPieces } from '#shared/vault/bulk/documents.mongo.ts'
import type { BulkChunk } from '#shared/vault/bulk/files.postgres.ts'
import { findStep, savePlan, updatePlan } from '#shared/operations/operation-steps.postgres.ts'
import { findVaultRetention } from '#shared/vault/base/expiries.postgres.ts'
import type { StepJob } from '#shared/domain/job-payloads.ts'
import type { MemoryStore } from '#shared/vault/base/memories.mongo.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'

type StoreChunkBackend = CaptionBackend & {
  memories: MemoryStore
  embedders: Embedders
  queue: Queue
  expiry: ExpiryPurger
}

const purgeTimeoutMs = 10_000

/** Nothing is left where the chunk was settled before, its operation cancelled, or its vault cleared or erased. */
type ChunkResult =
  | { state: 'stored' | 'nothing-left' }
  | { state: 'removes-earlier'; chunk: BulkChunk }

/**
 * Stores one chunk of a file. Safe to run any number of times at once: the plan is saved before the first memory
 * is written, all writes use the ids of the plan, and the chunk is settled once.
 *
 * @returns the step itself where that removes the earlier version of a document, which is then the caller's to do
 * @throws Refusal `upstream` when embedding fails, `unavailable` when a store is out of reach.
 */
export async function storeChunk(
  backend: StoreChunkBackend,
  { operation, n }: StepJob,
  signal?: AbortSignal,
): Promise<ChunkResult> {
  const { query } = backend.postgres
  const step = await findStep<Omit<BulkChunk, 'retentionDays'>>(query, operation, n)
  if (!step) return { state: 'nothing-left' }
  const chunk = { ...step, retentionDays: await findVaultRetention(query, step.vault) }
  if (chunk.isCancelled && (await cutChunk(backend, chunk))) return { state: 'nothing-left' }
  if (chunk.removesEarlier) return { state: 'removes-earlier', chunk }
  // An expired memory must not count as present.
  if (!(await backend.expiry.purgeExpired(chunk.vault, purgeTimeoutMs))) {
    throw expiredRemain()
  }
  const embedder = await backend.embedders.get(chunk.model)
  const items =
    chunk.kind === 'upload'
      ? await buildUploadItems(backend, chunk)
      : await buildImportItems(backend, chunk, embedder)
  const plan = await loadOrCreatePlan(backend, chunk, items)
  const plannedItems = items.map((item, index): PlannedItem => ({ ...item, planned: plan[index]! }))
  const isRetry = chunk.plan !== null
  const uncaptioned = await captionPictures(backend, chunk, plannedItems, signal)
  const written = plannedItems.filter(({ planned }) => planned.as !== 'skip')
  const memories = written.map(({ memory }) => memory)
  const work = { operation: memoryIdOf(chunk.operation, n), vault: chunk.vault, memories }
  await withExpiryProtocol(backend, [work], async () => {
    await writeMemories(backend, chunk, { items: plannedItems, embedder, isRetry, signal })
    await applyCurrentRetention(backend, query, {
      ...chunk,
      ids: written.map(({ planned }) => planned.id),
      // An earlier run may have written under another.
      days: isRetry ? undefined : chunk.retentionDays,
    })
    const told = plannedItems.filter(item => !uncaptioned.has(item))
    await finalizeStoredChunk(backend, chunk, told, uncaptioned.size)
  })
  return { state: 'stored' }
}

/** The plan that an earlier run saved, or a new one. */
async function loadOrCreatePlan(
  backend: StoreChunkBackend,
  chunk: BulkChunk,
  items: readonly BulkItem[],
): Promise<PlannedMemory[]> {
  // Another version of the program may split texts into other chunks.
  if (chunk.plan?.length === items.length) return chunk.plan
  const plan = await planItems(backend, chunk, items, chunk)
  const saved = await savePlan(backend.postgres.query, chunk, plan)
  if (saved.length === items.length) return saved
  await updatePlan(backend.postgres.query, chunk, plan)
  return plan
}

async function writeMemories(
  backend: StoreChunkBackend,
  chunk: BulkChunk,
  write: {
    items: PlannedItem[]
    embedder: Embedder
    /** An earlier run may have written some. */
    isRetry: boolean
    signal: AbortSignal | undefined
  },
): Promise<void> {
  const { items, embedder, isRetry, signal } = write
  const wanted = items.filter(({ planned }) => planned.as !== 'skip')
  const added = wanted.filter(({ planned }) => planned.as === 'new')
  const existing = isRetry
    ? await readItemStates(backend, chunk, added)
    : new Map<string, StoredState>()
  for (const { planned } of added) skipIfStoredByAnother(planned, existing.get(planned.id), chunk)
  const missing = wanted.filter(({ planned }) => !existing.has(planned.id))
  await forgetWrongEmbedder(backend, embedder, [chunk], embedMissing(missing, embedder, signal))

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
    if (open.length > 0) await updatePlan(backend.postgres.query, chunk, toPlan(items))
  }
  const replacing = wanted.filter(({ planned }) => planned.as === 'replace').map(toRestoredMemory)
  await replaceStored(backend.mongo, replacing, embedder.space)
  if (chunk.document === undefined) return
  const present = toPlan(items).filter(({ as }) => as === 'skip')
  await confirmPieces(backend.mongo, chunk, idsOf(present))
}

/**
 * Decides about items whose id was taken, in the plan itself: one that another operation has stored becomes `skip`; one
 * of this operation was written by an earlier run. An id without a document in this vault is another vault's: the id
 * becomes `next`; without a next it becomes `skip`.
 *
 * @returns the items to insert under their next id
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
    skipIfStoredByAnother(planned, state, chunk)
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

/** Changes the plan to `skip` for a live memory of another operation: it is the same one, not counted here. */
function skipIfStoredByAnother(
  planned: PlannedMemory,
  state: StoredState | undefined,
  { operation }: BulkChunk,
): void {
  if (state?.isLive && state.operation !== operation) planned.as = 'skip'
}

const readItemStates = (
  backend: StoreChunkBackend,
  chunk: BulkChunk,
  items: readonly PlannedItem[],
) => readStoredStates(backend, chunk, idsOf(toPlan(items)))

/** Embeds the texts of items that the file has no vector for. */
async function embedMissing(
  items: readonly PlannedItem[],
  embedder: Embedder,
  signal: AbortSignal | undefined,
): Promise<void> {
  const withoutVector = items.filter(({ vector }) => !vector)
  const texts = withoutVector.map(({ memory }) => memory.text)
  const vectors = await embedToStore(embedder, texts, signal)
  withoutVector.forEach((item, index) => (item.vector = vectors[index]!))
}

const toRestoredMemory = ({ memory, vector, planned }: PlannedItem): RestoredMemory => ({
  ...memory,
  id: planned.id,
  vector: vector!,
})

const toPlan = (items: readonly PlannedItem[]): PlannedMemory[] =>
  items.map(({ planned }) => planned)
