import {
  announceEnds,
  changeRetention,
  leaveUnborn,
  levelUnborn,
  withdrawEnds,
  type Unborn,
} from '#shared/vault/base/retention-on-write.ts'
import type { Memory } from '#shared/domain/memory.ts'
import { settleStored, type Stored } from '#shared/vault/ingest/finalize-stored.postgres.ts'
import type { IngestJob } from '#shared/domain/job-payloads.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Memories } from '#shared/vault/base/memories.mongo.ts'
import type { Embedders } from '#shared/models/embedders.ts'

/**
 * Stores what was promised. Safe to run any number of times, in several processes at once: ids are
 * fixed, only what is missing is embedded, and an operation is settled once.
 *
 * All jobs of a call are embedded together and written together; when that fails nothing is settled.
 *
 * @throws Refusal `upstream` when embedding fails, `unavailable` when a store is out of reach.
 */
export async function storePromised(
  backend: Stores & { memories: Memories; embedders: Embedders },
  promised: readonly IngestJob[],
  { again, signal }: { again: boolean; signal?: AbortSignal },
): Promise<void> {
  const { memories, embedders } = backend
  const announced = await announceEnds(backend, promised)
  const unborn = announced.length > 0 ? await leaveUnborn(backend, promised) : noneUnborn
  for (const [model, jobs] of Map.groupBy(promised, job => job.model)) {
    const embedder = await embedders.get(model)
    const open = again ? await missingOf(memories, jobs) : rowsOf(jobs)
    const missing = open.filter(({ job, memory }) => !isUnborn(unborn, job, memory))
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
  await settle(backend, promised, unborn)
  await levelUnborn(backend, promised, unborn)
  await withdrawEnds(backend, announced)
}

const noneUnborn: Unborn = new Map()

const isUnborn = (unborn: Unborn, { operation }: IngestJob, { id }: Memory): boolean =>
  unborn.get(operation)?.has(id) ?? false

async function settle(
  backend: Stores & { memories: Memories },
  promised: readonly IngestJob[],
  unborn: Unborn,
): Promise<void> {
  const stored = promised.map(job => storedOf(job, unborn))
  const { overtaken, stale } = await settleStored(backend.postgres.query, stored)
  for (const job of promised.filter(({ operation }) => overtaken.includes(operation))) {
    await backend.memories.discard(job, idsOf(job.memories))
  }
  if (stale.size === 0) return
  const late = promised.filter(({ operation }) => stale.has(operation))
  const kept = []
  for (const job of late) kept.push(await underRetention(backend, job, stale.get(job.operation)!))
  await settle(backend, kept, unborn)
}

/** The account has decided otherwise since it was accepted. */
async function underRetention(
  backend: Stores,
  job: IngestJob,
  days: number | null,
): Promise<IngestJob> {
  await changeRetention(backend, { ...job, ids: idsOf(job.memories), days })
  const { retentionDays: _, ...rest } = job
  return { ...rest, ...(days !== null && { retentionDays: days }) }
}

const rowsOf = (jobs: readonly IngestJob[]) =>
  jobs.flatMap(job => job.memories.map(memory => ({ job, memory })))

/** On a second run: what the first did not get to write. */
async function missingOf(memories: Memories, jobs: readonly IngestJob[]) {
  const missing = []
  for (const job of jobs) {
    const taken = await memories.taken(
      job,
      job.memories.map(({ id }) => id),
    )
    missing.push(...rowsOf([job]).filter(({ memory }) => !taken.has(memory.id)))
  }
  return missing
}

function storedOf(job: IngestJob, unborn: Unborn): Stored {
  const stored = job.memories.filter(memory => !isUnborn(unborn, job, memory))
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
