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
import { removeClearedJobs, type RemovedJobs } from '#shared/storage/queue/cleared-jobs.ts'
import type { ClearedRange } from '#shared/domain/job-payloads.ts'
import type { Stores } from '#shared/storage/stores.ts'

/** Documents in one go: 1,000 of 1,536 dimensions take about 0.1 s. */
const batch = 1_000

/** Work in flight that was overtaken ends within a second; one whose worker died, within 15. */
const drainTimeoutMs = 60_000
const pollMs = 100

/**
 * Removes everything that a clearing has made invisible, waits for work in flight that may still write
 * there, and reads again to see that nothing is left.
 *
 * @param onErased hears how many documents are gone so far.
 * @throws Refusal `unavailable` when work in flight does not end within a minute, or something is left.
 */
export async function eraseCleared(
  stores: Stores,
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
  const left = await countCleared(stores.mongo, cleared)
  if (left > 0) throw notErasedYet(`${left} documents of what was cleared are there again`)
}

/** One pass over what may have come late. @returns how much it found. */
export async function sweepCleared(
  stores: Stores,
  cleared: ClearedRange,
): Promise<{ jobs: number; documents: number }> {
  const { removed } = await removeInvalidatedWork(stores, cleared, new Set())
  let found = 0
  await removeDocuments(stores, cleared, async documents => void (found += documents))
  return { jobs: removed, documents: found }
}

/**
 * Exchanges under way, jobs, staged files and lent batches; the operations they leave behind are
 * cancelled.
 *
 * @param files operations of files that are gone, kept from pass to pass: their jobs may still run.
 */
async function removeInvalidatedWork(
  { postgres }: Stores,
  cleared: ClearedRange,
  files: Set<string>,
): Promise<RemovedJobs> {
  const exchanges = await dropClearedExchanges(postgres.query, cleared)
  const jobs = await postgres.transaction(async tx => {
    for (const operation of await dropClearedFiles(tx, cleared)) files.add(operation)
    await dropClearedLeases(tx, cleared)
    const jobs = await removeClearedJobs(tx, cleared, [...files])
    await cancelClearedOperations(tx, [...jobs.operations, ...files])
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
