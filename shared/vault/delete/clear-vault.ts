import { actorOf, type Caller } from '#shared/access/caller.ts'
import {
  countCleared,
  deleteCleared,
  deleteClearedTombstones,
} from '#shared/vault/delete/delete-cleared.mongo.ts'
import { recordAccountEvent } from '#shared/events/account-events.postgres.ts'
import type { Transaction, Postgres } from '#shared/storage/postgres/connect.ts'
import {
  beginErasure,
  endErasure,
  deleteStoredResponses,
  deleteSessions,
  findOperationStatus,
  notifyCleared,
  cancelClearedOperations,
  dropClearedFiles,
  dropClearedLeases,
} from '#shared/vault/base/erasures.postgres.ts'
import { acceptOperation } from '#shared/operations/accept-operations.ts'
import {
  finishOperation,
  reportProgress,
  failOperations,
} from '#shared/operations/operations.postgres.ts'
import { setVaultModel } from '#shared/vault/reembed/vault-models.postgres.ts'
import { lockVault, raiseEpoch, raiseSessionEpoch } from '#shared/vault/base/vaults.postgres.ts'
import {
  eraseSessionNames,
  eraseTextsOutsideMemories,
} from '#shared/vault/delete/erase-texts.postgres.ts'
import type { ClearJob, ClearedRange } from '#shared/domain/job-payloads.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { VaultIndexes } from '#shared/search/index/vault-indexes.ts'
import type { Stores } from '#shared/storage/stores.ts'
import { setTimeout as delay } from 'node:timers/promises'
import { Refusal } from '#shared/core/errors.ts'
import { withMemorySpan } from '#shared/core/trace.ts'
import { dropClearedExchanges } from '#shared/vault/ingest/open-exchanges.postgres.ts'
import { dropClearedTraces } from '#shared/vault/read/traces/trace-retention.postgres.ts'
import { lockVaults } from '#shared/operations/vault-locks.postgres.ts'
import { removeClearedJobs, type RemovedJobs } from '#shared/storage/queue/cleared-jobs.ts'

/**
 * Clears a vault or one session of it. When this resolves, no process can see its memories any more: epoch,
 * operation and job are written in one transaction. `finishClearing` removes the memories from the stores.
 * Accepting the same operation again clears nothing more.
 */
export const acceptClearing = (...parameters: Parameters<typeof hideCleared>): Promise<void> => {
  const [, { scope }, { session }] = parameters
  const range = session === null ? 'vault' : 'session'
  return withMemorySpan('delete_memory', { vault: scope.vault, range }, () =>
    hideCleared(...parameters),
  )
}

async function hideCleared(
  {
    postgres,
    queue,
    vaultIndexes,
  }: { postgres: Postgres; queue: Queue; vaultIndexes: VaultIndexes },
  caller: Caller,
  request: {
    /** The UUIDv7 for the operation. */
    operation: string
    /** The session to clear; null: the whole vault. */
    session: string | null
    reset: boolean
    awaited: boolean
  },
): Promise<void> {
  const { operation, session, reset, awaited } = request
  const { account, keyHash, maskedKey, scope } = caller
  const { vault } = scope
  await postgres.transaction(async tx => {
    // By itself: the next statement sees what the last holder of this lock has written.
    const { epoch } = await lockVault(tx, vault)
    const accepted = await acceptOperation(tx, queue, {
      operation: {
        id: operation,
        account,
        vault,
        keyHash,
        kind: 'clear',
        awaited,
        session,
        // The job counts the memories.
        total: 0,
        // Cleared memories are invisible already: the work cannot be cancelled.
        started: true,
        billing: 'never',
      },
      queueName: 'clear',
      async jobs() {
        const cleared = await raiseEpochs(tx, { vault, epoch, session })
        if (reset) await setVaultModel(tx.query, vault, null)
        await beginErasure(tx, cleared)
        return [{ id: operation, data: { ...cleared, operation, key: maskedKey, reset } }]
      },
    })
    if (!accepted) return
    // Only the account's own vaults: a member's private vault is none of the account's business.
    if (session === null && caller.kind === 'vault') {
      const event = { account, actor: actorOf(caller), subject: maskedKey } as const
      await recordAccountEvent(tx, { ...event, action: 'vault.cleared' })
    }
    await deleteStoredResponses(tx, vault, { ofCopies: 'all' })
    await notifyCleared(tx, vault)
  })
  vaultIndexes.forget(vault)
}

/** @returns the epochs that end here; earlier ones were cleared before. */
async function raiseEpochs(
  tx: Transaction,
  { vault, epoch, session }: { vault: string; epoch: number; session: string | null },
): Promise<ClearedRange> {
  if (session !== null) {
    const ended = await raiseSessionEpoch(tx, vault, session)
    return { vault, session, ...ended, vaultEpoch: epoch }
  }
  const ended = await raiseEpoch(tx, vault)
  await deleteSessions(tx, vault)
  return { vault, session, ...ended, vaultEpoch: epoch }
}

/**
 * Removes from both stores what a clearing made invisible, and ends the operation. Safe to run any number of
 * times: the number of memories is stored before the first is removed.
 *
 * @throws Refusal `unavailable` when a store is out of reach or documents are left: the next run removes the
 *   rest.
 */
export async function finishClearing(
  backend: Stores & { queue: Queue },
  job: ClearJob,
  signal: AbortSignal,
): Promise<void> {
  const { postgres, mongo, queue } = backend
  const { operation, key, session, reset } = job
  const progress = await findOperationStatus(postgres.query, operation)
  if (!progress || progress.state === 'done') return

  const total = progress.total || (await countCleared(mongo, job))
  await reportProgress(postgres.query, operation, { done: 0, total })
  await eraseCleared(backend, job, {
    signal,
    onErased: done => reportProgress(postgres.query, operation, { done: Math.min(done, total) }),
  })
  // The name of a single cleared session stays: its epoch rejects work that arrives late.
  if (session === null) {
    await eraseTextsOutsideMemories(postgres.query, job)
    await eraseSessionNames(postgres.query, job)
  }
  await postgres.transaction(async tx => {
    const inSession = session !== null
    const outcome = { kind: 'clear', key, inSession, session, deleted: total, reset } as const
    await finishOperation(tx, queue, operation, outcome)
    await endErasure(tx, job)
  })
}

/** Called after the last try: marks the operation as failed; the sweeps remove the rest. */
export const abandonClearing = (
  { postgres, queue }: { postgres: Postgres; queue: Queue },
  job: ClearJob,
): Promise<void> =>
  postgres.transaction(async tx => {
    await failOperations(tx, queue, [job.operation])
    await endErasure(tx, job)
  })

/** Documents per command: 1,000 of 1,536 dimensions take about 0.1 s. */
const batch = 1_000

/** Running work that was invalidated ends within a second, work whose worker died within 15. */
const drainTimeoutMs = 60_000
const pollMs = 100

/**
 * Removes what a clearing made invisible, waits for running work that may still write there, and checks that
 * nothing is left.
 *
 * @param onErased called with the number of documents removed so far
 * @throws Refusal `unavailable` when running work does not end within a minute, or documents are left.
 */
async function eraseCleared(
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
 * Removes exchanges, traces, jobs, files and leases of what was cleared, and cancels their operations.
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
