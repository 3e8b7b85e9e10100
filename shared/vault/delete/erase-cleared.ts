import { setTimeout as delay } from 'node:timers/promises'
import { Refusal } from '#shared/core/errors.ts'
import {
  countCleared,
  deleteCleared,
  deleteClearedTombstones,
} from '#shared/vault/delete/delete-cleared.mongo.ts'
import {
  cancelClearedOperations,
  dropClearedFiles,
  dropClearedLeases,
} from '#shared/vault/base/erasures.postgres.ts'
import { dropClearedExchanges } from '#shared/vault/ingest/open-exchanges.postgres.ts'
import { dropClearedTraces } from '#shared/vault/read/traces/call-traces.postgres.ts'
import { lockVaults } from '#shared/operations/vault-locks.postgres.ts'
import { removeClearedJobs, type RemovedJobs } from '#shared/storage/queue/cleared-jobs.ts'
import type { ClearedRange } from '#shared/domain/job-payloads.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { Stores } from '#shared/storage/stores.ts'

/** Documents per command: 1,000 of 1,536 dimensions take about 0.1 s. */
const batch = 1_000

/** Running work that was invalidated ends within a second, work whose worker died within 15. */
const drainTimeoutMs = 60_000
const pollMs = 100

/**
 * Removes everything that a clearing made invisible, waits for running work that may still write there, and
 * checks that nothing is left.
 *
 * @param onErased called with the number of documents removed so far
 * @throws Refusal `unavailable` when running work does not end within a minute, or documents are left.
 */
export async function eraseCleared(
  stores: Stores & { queue: Queue },
  cleared: ClearedRange,
  { signal, onErased }: { signal: AbortSignal; onErased: (documents: number) => Promise<void> },
): Promise<void> {
  const until = Date.now() + drainTimeoutMs
  const files = new Set<string>()
  let erased = 0
  for (;;) {
    const { removed, active } = await removeInvalidatedWork(stores, cleared, files)
    await removeDocuments(stores, cleared, async documents => {
      signal.throwIfAborted()
      erased += documents
      await onErased(erased)
    })
    if (removed === 0 && active === 0) break
    if (Date.now() > until)
      throw notErasedYet(`${active} jobs still hold words of what was cleared`)
    if (active > 0) await delay(pollMs, null, { signal })
  }
  const remaining = await countCleared(stores.mongo, cleared)
  if (remaining > 0)
    throw notErasedYet(`${remaining} documents of what was cleared are there again`)
}

/** Removes jobs and documents that arrived after the clearing. @returns how many. */
export async function sweepCleared(
  stores: Stores & { queue: Queue },
  cleared: ClearedRange,
): Promise<{ jobs: number; documents: number }> {
  const { removed } = await removeInvalidatedWork(stores, cleared, new Set())
  let count = 0
  await removeDocuments(stores, cleared, async documents => void (count += documents))
  return { jobs: removed, documents: count }
}

/**
 * Removes open exchanges, traces, jobs, staged files and leased batches of what was cleared, and cancels their
 * operations.
 *
 * @param files collects the operations of deleted files over all passes: their jobs may still run
 */
async function removeInvalidatedWork(
  { postgres, queue }: Stores & { queue: Queue },
  cleared: ClearedRange,
  files: Set<string>,
): Promise<RemovedJobs> {
  const exchanges = await dropClearedExchanges(postgres.query, cleared)
  await dropClearedTraces(postgres.query, cleared)
  const jobs = await postgres.transaction(async tx => {
    await lockVaults(tx, [cleared.vault])
    for (const operation of await dropClearedFiles(tx, cleared)) files.add(operation)
    await dropClearedLeases(tx, cleared)
    const jobs = await removeClearedJobs(tx, cleared, [...files])
    await cancelClearedOperations(tx, queue, [...jobs.operations, ...files])
    return jobs
  })
  return { ...jobs, removed: jobs.removed + exchanges }
}

async function removeDocuments(
  { mongo }: Stores,
  cleared: ClearedRange,
  onErased: (documents: number) => Promise<void>,
): Promise<void> {
  for (;;) {
    const documents = await deleteCleared(mongo, cleared, batch)
    if (documents === 0) break
    await onErased(documents)
  }
  if (cleared.session !== null) return
  while ((await deleteClearedTombstones(mongo, cleared, batch)) > 0);
}

const notErasedYet = (message: string): Refusal => new Refusal('unavailable', message)
