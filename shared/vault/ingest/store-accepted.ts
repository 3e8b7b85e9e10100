import {
  scheduleExpiry,
  changeRetention,
  skipAlreadyExpired,
  finalizeSkipped,
  cancelScheduledExpiry,
  type AlreadyExpiredIds,
} from '#shared/vault/base/apply-retention.ts'
import type { Memory } from '#shared/domain/memory.ts'
import {
  finalizeStored,
  type StoredOperation,
} from '#shared/vault/ingest/finalize-stored.postgres.ts'
import type { IngestJob } from '#shared/domain/job-payloads.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { MemoryStore } from '#shared/vault/base/memories.mongo.ts'
import type { Embedders } from '#shared/models/embedders.ts'

/**
 * Stores what was promised. Safe to run any number of times, in several processes at once: ids are
 * fixed, only what is missing is embedded, and an operation is settled once.
 *
 * All jobs of a call are embedded together and written together; when that fails nothing is settled.
 *
 * @throws Refusal `upstream` when embedding fails, `unavailable` when a store is out of reach.
 */
export async function storeAccepted(
  backend: Stores & { memories: MemoryStore; embedders: Embedders },
  accepted: readonly IngestJob[],
  { again, signal }: { again: boolean; signal?: AbortSignal },
): Promise<void> {
  const { memories, embedders } = backend
  const announced = await scheduleExpiry(backend, accepted)
  const alreadyExpired =
    announced.length > 0 ? await skipAlreadyExpired(backend, accepted) : noneAlreadyExpired
  for (const [model, jobs] of Map.groupBy(accepted, job => job.model)) {
    const embedder = await embedders.get(model)
    const open = again ? await findUnstored(memories, jobs) : memoriesOfJobs(jobs)
    const missing = open.filter(({ job, memory }) => !isAlreadyExpired(alreadyExpired, job, memory))
    const texts = missing.map(({ memory }) => memory.text)
    const vectors = await embedder.embedTexts(texts, signal)
    const rows = missing.map(({ job, memory }, index) => ({
      ...memory,
      vault: job.vault,
      epoch: job.epoch,
      session: job.session,
      sessionEpoch: job.sessionEpoch,
      operation: job.operation,
      vector: vectors[index]!,
    }))
    await memories.add(rows, embedder.space)
  }
  await finalizeJobs(backend, accepted, alreadyExpired)
  await finalizeSkipped(backend, accepted, alreadyExpired)
  await cancelScheduledExpiry(backend, announced)
}

const noneAlreadyExpired: AlreadyExpiredIds = new Map()

const isAlreadyExpired = (
  alreadyExpired: AlreadyExpiredIds,
  { operation }: IngestJob,
  { id }: Memory,
): boolean => alreadyExpired.get(operation)?.has(id) ?? false

async function finalizeJobs(
  backend: Stores & { memories: MemoryStore },
  accepted: readonly IngestJob[],
  alreadyExpired: AlreadyExpiredIds,
): Promise<void> {
  const stored = accepted.map(job => storedOperation(job, alreadyExpired))
  const { clearedOperations, changedRetentions } = await finalizeStored(
    backend.postgres.query,
    stored,
  )
  for (const job of accepted.filter(({ operation }) => clearedOperations.includes(operation))) {
    await backend.memories.discard(job, idsOf(job.memories))
  }
  if (changedRetentions.size === 0) return
  const late = accepted.filter(({ operation }) => changedRetentions.has(operation))
  const kept = []
  for (const job of late)
    kept.push(await withRetention(backend, job, changedRetentions.get(job.operation)!))
  await finalizeJobs(backend, kept, alreadyExpired)
}

/** The account has decided otherwise since it was accepted. */
async function withRetention(
  backend: Stores,
  job: IngestJob,
  days: number | null,
): Promise<IngestJob> {
  await changeRetention(backend, { ...job, ids: idsOf(job.memories), days })
  const { retentionDays: _, ...rest } = job
  return { ...rest, ...(days !== null && { retentionDays: days }) }
}

const memoriesOfJobs = (jobs: readonly IngestJob[]) =>
  jobs.flatMap(job => job.memories.map(memory => ({ job, memory })))

/** On a second run: what the first did not get to write. */
async function findUnstored(memories: MemoryStore, jobs: readonly IngestJob[]) {
  const missing = []
  for (const job of jobs) {
    const taken = await memories.findTakenIds(
      job,
      job.memories.map(({ id }) => id),
    )
    missing.push(...memoriesOfJobs([job]).filter(({ memory }) => !taken.has(memory.id)))
  }
  return missing
}

function storedOperation(job: IngestJob, alreadyExpired: AlreadyExpiredIds): StoredOperation {
  const stored = job.memories.filter(memory => !isAlreadyExpired(alreadyExpired, job, memory))
  const core = job.session === null ? stored : []
  return {
    operation: job.operation,
    session: job.session,
    sessionEpoch: job.sessionEpoch,
    ids: idsOf(stored),
    rawUnits: core.length,
    rawTokens: core.reduce((sum, { tokens }) => sum + tokens, 0),
    retentionDays: job.retentionDays ?? null,
  }
}

const idsOf = (memories: readonly Memory[]): string[] => memories.map(({ id }) => id)
