import { memoriesStored } from '#shared/core/metrics.ts'
import { embedToStore, forgetWrongEmbedder } from '#shared/vault/base/embed-to-store.ts'
import { changeRetention, withExpiryProtocol } from '#shared/vault/base/expiry-protocol.ts'
import type { Memory } from '#shared/domain/memory.ts'
import {
  finalizeStored,
  findChangedRetentions,
  type StoredOperation,
} from '#shared/vault/ingest/finalize-stored.postgres.ts'
import type { IngestJob } from '#shared/domain/job-payloads.ts'
import type { Stores } from '#shared/storage/stores.ts'
import { contentHash, type MemoryStore } from '#shared/vault/base/memories.mongo.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import { sendDeliveryJobs } from '#shared/events/webhooks/delivery-job.ts'
import type { Embedders } from '#shared/models/embedders.ts'
import { isExpired } from '#shared/domain/expiry.ts'
import { recordTombstoneDay } from '#shared/vault/base/erasures.postgres.ts'
import { forgetQuestions } from '#shared/vault/base/trace-questions.postgres.ts'
import { tombstoneAlreadyExpired } from '#shared/vault/base/expiries.mongo.ts'
import { finalizeTombstones, findTombstonedBy } from '#shared/vault/base/tombstones.mongo.ts'

/**
 * The second half of ingest, in the job (the first is `acceptExchange`): embeds and writes the memories of
 * accepted exchanges, then finalizes their operations. Safe to run any number of times at once: ids are fixed,
 * only missing memories are embedded, and an operation is finalized once. All jobs of a call have one model;
 * when it fails none is finalized.
 *
 * @param again an earlier run may have stored some of the memories
 * @param claims of running jobs, by operation: they end in the transaction that finalizes them, unless something is
 *   left to do after it
 * @returns the operations whose jobs have ended so
 * @throws Refusal `upstream` when embedding fails, `unavailable` when a store is out of reach.
 */
export async function storeAccepted(
  backend: Stores & { queue: Queue; memories: MemoryStore; embedders: Embedders },
  accepted: readonly IngestJob[],
  { again, signal, claims }: { again: boolean; signal?: AbortSignal; claims?: Claims },
): Promise<ReadonlySet<string>> {
  return withExpiryProtocol(backend, accepted, async () => {
    const alreadyExpired = await skipAlreadyExpired(backend, accepted)
    await writeMemories(backend, accepted, { again, signal, alreadyExpired })
    const ended = await finalizeJobs(backend, accepted, { alreadyExpired, claims })
    await finalizeSkipped(backend, accepted, alreadyExpired)
    return ended
  })
}

type Claims = ReadonlyMap<string, number>

/** Embeds and writes what jobs of one model have not stored yet. */
async function writeMemories(
  backend: Pick<Stores, 'mongo'> & { memories: MemoryStore; embedders: Embedders },
  jobs: readonly IngestJob[],
  options: { again: boolean; signal: AbortSignal | undefined; alreadyExpired: AlreadyExpiredIds },
): Promise<void> {
  const { memories, embedders } = backend
  const { again, signal, alreadyExpired } = options
  const embedder = await embedders.get(jobs[0]!.model)
  const open = again ? await findUnstored(memories, jobs) : memoriesOfJobs(jobs)
  const missing = open.filter(({ job, memory }) => !isAlreadyExpired(alreadyExpired, job, memory))
  const texts = missing.map(({ memory }) => memory.text)
  const embedding = embedToStore(embedder, texts, signal)
  const vectors = await forgetWrongEmbedder(backend, embedder, jobs, embedding)
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

const isAlreadyExpired = (
  alreadyExpired: AlreadyExpiredIds,
  { operation }: IngestJob,
  { id }: Memory,
): boolean => alreadyExpired.get(operation)?.has(id) ?? false

/** @returns the operations whose jobs have ended. */
async function finalizeJobs(
  backend: Stores & { queue: Queue; memories: MemoryStore },
  accepted: readonly IngestJob[],
  options: { alreadyExpired: AlreadyExpiredIds; claims: Claims | undefined },
): Promise<Set<string>> {
  const { postgres, queue } = backend
  const operations = accepted.map(job => storedOperation(job, options))
  const { clearedOperations, endedJobs, finalized, deliveries } = await postgres.transaction(tx => {
    const result = finalizeStored(tx, operations)
    tx.commit()
    return result
  })
  memoriesStored.inc(operations.reduce((sum, { ids }) => sum + ids.length, 0))
  // The messages are committed; the sweep sends their jobs where this process ends before it does.
  await sendDeliveryJobs(postgres, queue, deliveries)
  for (const job of accepted.filter(({ operation }) => clearedOperations.includes(operation))) {
    await backend.memories.discard(job, idsOf(job.memories))
  }
  const endedIds = new Set(endedJobs)
  if (finalized === operations.length) return endedIds
  const changedRetentions = await findChangedRetentions(postgres.query, operations)
  const changedJobs = []
  for (const job of accepted.filter(({ operation }) => changedRetentions.has(operation))) {
    changedJobs.push(await withRetention(backend, job, changedRetentions.get(job.operation)!))
  }
  if (changedJobs.length === 0) return endedIds
  return endedIds.union(await finalizeJobs(backend, changedJobs, options))
}

/** The job with its memories under another retention, which the account has set since acceptance. */
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

/** The memories that a first run has not written. */
async function findUnstored(memories: MemoryStore, jobs: readonly IngestJob[]) {
  const unstored = []
  for (const job of jobs) {
    const takenIds = await memories.findTakenIds(job, idsOf(job.memories))
    unstored.push(...memoriesOfJobs([job]).filter(({ memory }) => !takenIds.has(memory.id)))
  }
  return unstored
}

function storedOperation(
  job: IngestJob,
  { alreadyExpired, claims }: { alreadyExpired: AlreadyExpiredIds; claims: Claims | undefined },
): StoredOperation {
  const memories = job.memories.filter(memory => !isAlreadyExpired(alreadyExpired, job, memory))
  const coreMemories = job.session === null ? memories : []
  return {
    operation: job.operation,
    vault: job.vault,
    session: job.session,
    sessionEpoch: job.sessionEpoch,
    ids: idsOf(memories),
    rawUnits: coreMemories.length,
    rawTokens: coreMemories.reduce((sum, { tokens }) => sum + tokens, 0),
    retentionDays: job.retentionDays ?? null,
    claim: alreadyExpired.has(job.operation) ? undefined : claims?.get(job.operation),
  }
}

const idsOf = (memories: readonly Memory[]): string[] => memories.map(({ id }) => id)

/** Ids of memories that expired before they were stored, by operation. */
type AlreadyExpiredIds = ReadonlyMap<string, ReadonlySet<string>>

/**
 * Writes tombstones in place of memories that have expired before they were stored.
 *
 * @returns the ids not to store; an earlier run may have stored some of the expired ones in time.
 */
async function skipAlreadyExpired(
  { mongo, postgres }: Stores,
  jobs: readonly IngestJob[],
): Promise<AlreadyExpiredIds> {
  const alreadyExpired = new Map<string, Set<string>>()
  for (const job of jobs) {
    const expired = job.memories.filter(memory => isExpired(memory, Date.now()))
    if (expired.length === 0) continue
    const expiredIds = idsOf(expired)
    const hashes = expired.map(({ text }) => contentHash(text))
    await forgetQuestions(postgres.query, job.vault, hashes)
    await tombstoneAlreadyExpired(mongo, job, expiredIds)
    const tombstoned = await findTombstonedBy(mongo, job, expiredIds)
    alreadyExpired.set(job.operation, new Set(tombstoned.map(({ id }) => id)))
  }
  return alreadyExpired
}

/** Reduces their tombstones to the taken ids. Call it when the operations are finalized. */
async function finalizeSkipped(
  { mongo, postgres }: Stores,
  jobs: readonly IngestJob[],
  alreadyExpired: AlreadyExpiredIds,
): Promise<void> {
  for (const job of jobs) {
    const ids = alreadyExpired.get(job.operation)
    if (!ids || ids.size === 0) continue
    await recordTombstoneDay(postgres, job.vault)
    await finalizeTombstones(mongo, job, [...ids])
  }
}
