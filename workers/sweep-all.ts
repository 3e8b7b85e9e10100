import type { Backend } from '#shared/backend.ts'
import { sweepCleared } from '#shared/vault/delete/clear-vault.ts'
import { reembedLateArrivals } from '#shared/vault/reembed/reembed.ts'
import { storeAbandoned } from '#shared/vault/ingest/open-exchanges.ts'
import { deleteTombstonesBefore } from '#shared/vault/delete/delete-cleared.mongo.ts'
import { finalizeStrandedWrites } from '#shared/org/memories/finalize-shared-writes.ts'
import { findDeniedMemories } from '#shared/org/trail/denied-memories.ts'
import { dropRemovedStatements } from '#shared/org/memories/shared-statements.postgres.ts'
import { finishWithdrawals } from '#shared/org/memories/withdraw-statement.ts'
import { reembedSharedVaults } from '#shared/org/memories/reembed-shared-vaults.ts'
import { dropStaleFiles } from '#shared/vault/bulk/files.postgres.ts'
import {
  dueErasures,
  deleteTombstoneDay,
  oldTombstoneDays,
  postponeErasure,
} from '#shared/vault/base/erasures.postgres.ts'
import { vaultsWithExpired } from '#shared/vault/base/expiries.postgres.ts'
import {
  dropOldResponses,
  dropOldOperations,
  trimVaultChanges,
  unfinishedOperationsPage,
} from '#shared/operations/table-cleanup.postgres.ts'
import { failOperations } from '#shared/operations/operations.postgres.ts'
import { dropOldUnansweredTurns } from '#shared/vault/ingest/open-exchanges.postgres.ts'
import { dropOldTurns } from '#shared/org/base/org-turns.postgres.ts'
import {
  dropExpiredTraces,
  shortenTraces,
} from '#shared/vault/read/traces/trace-retention.postgres.ts'
import { dropOldRecalledTurns } from '#shared/vault/read/traces/recalled-turns.postgres.ts'
import { purgeErasedAccounts } from '#shared/accounts/account-erasures.postgres.ts'
import { dropOldRetrievals } from '#shared/org/trail/shared-retrievals.postgres.ts'
import { endOrphanedTagRuns } from '#shared/org/pipeline/tag-runs.postgres.ts'
import { dropOldSharedWrites } from '#shared/org/memories/shared-writes.postgres.ts'
import { tellBudgets } from '#shared/access/key-budgets.postgres.ts'
import { dropEndedOAuth } from '#shared/access/oauth-records.postgres.ts'
import { rollUpAccountUsage, rollUpKeyUsage } from '#shared/billing/usage-sums.postgres.ts'
import { sendMissingDeliveryJobs } from '#shared/events/webhooks/deliver.ts'
import { dropOldDeliveries, giveUpDeliveries } from '#shared/events/webhooks/deliveries.postgres.ts'
import { operationsWithoutJob } from '#shared/storage/queue/cleared-jobs.ts'
import { sampleQueues } from '#shared/storage/queue/queue-samples.postgres.ts'

type SweepBackend = Pick<
  Backend,
  | 'expiry'
  | 'postgres'
  | 'mongo'
  | 'log'
  | 'ingest'
  | 'queue'
  | 'embedders'
  | 'queryVectors'
  | 'vaultIndexes'
  | 'nearest'
  | 'seal'
  | 'usage'
  | 'now'
>

/** Each is bounded per run, safe to run at any time, and returns the number of things it found. */
const sweeps: Record<string, (backend: SweepBackend) => Promise<number>> = {
  exchanges: storeAbandoned,
  erased: sweepErasures,
  expiredMemories: purgeExpiredMemories,
  tombstones: purgeTombstones,
  stranded: failStrandedOperations,
  answers: ({ postgres }) => dropOldResponses(postgres.query),
  operations: ({ postgres }) => dropOldOperations(postgres.query),
  changes: ({ postgres }) => trimVaultChanges(postgres.query),
  files: ({ postgres }) => dropStaleFiles(postgres.query),
  turns: ({ postgres }) => dropOldTurns(postgres.query),
  recalledTurns: ({ postgres }) => dropOldRecalledTurns(postgres.query),
  shortenedTraces: ({ postgres }) => shortenTraces(postgres.query),
  traces: ({ postgres }) => dropExpiredTraces(postgres.query),
  unansweredTurns: ({ postgres }) => dropOldUnansweredTurns(postgres.query),
  sharedWrites: finalizeStrandedWrites,
  deniedMemories: findDeniedMemories,
  withdrawals: finishWithdrawals,
  removedStatements: ({ postgres }) => dropRemovedStatements(postgres.query),
  sharedSpaces: reembedSharedVaults,
  movedVaults: reembedLateArrivals,
  tagRuns: ({ postgres }) => endOrphanedTagRuns(postgres.query),
  sharedHistory: ({ postgres }) => dropOldSharedWrites(postgres.query),
  sharedRetrievals: ({ postgres }) => dropOldRetrievals(postgres.query),
  erasedAccounts: ({ postgres }) => purgeErasedAccounts(postgres.query),
  webhooks: ({ postgres }) => dropOldDeliveries(postgres.query),
  givenUpDeliveries: ({ postgres }) => giveUpDeliveries(postgres.query),
  unsentWebhooks: sendMissingDeliveryJobs,
  applications: ({ postgres }) => dropEndedOAuth(postgres.query),
  budgets: tellBudgets,
  usageDays: ({ postgres }) => rollUpKeyUsage(postgres.query),
  accountDays: ({ postgres }) => rollUpAccountUsage(postgres.query),
  queueSamples: ({ postgres, now }) => sampleQueues(postgres.query, now()),
}

/** Runs every sweep once. @returns by sweep how much it found; those that failed are logged and missing. */
export async function sweepAll(backend: SweepBackend): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const [name, run] of Object.entries(sweeps)) {
    try {
      counts[name] = await run(backend)
    } catch (error) {
      backend.log.warn({ err: error, sweep: name }, 'sweep.failed')
    }
  }
  const level = Object.values(counts).some(count => count > 0) ? 'info' : 'debug'
  backend.log[level](counts, 'sweep.done')
  return counts
}

const dueVaultsMax = 200
const purgeTimeoutMs = 30_000

/** Memories that expired in vaults without requests. */
async function purgeExpiredMemories({ postgres, expiry }: SweepBackend): Promise<number> {
  const vaults = await vaultsWithExpired(postgres.query, dueVaultsMax)
  for (const vault of vaults) await expiry.purgeExpired(vault, purgeTimeoutMs)
  return vaults.length
}

const erasuresMax = 200

/** Jobs that were running when a vault was cleared may have written there since. */
async function sweepErasures({ postgres, mongo, queue }: SweepBackend): Promise<number> {
  let count = 0
  for (const cleared of await dueErasures(postgres.query, erasuresMax)) {
    const { jobs, documents } = await sweepCleared({ postgres, mongo, queue }, cleared)
    count += jobs + documents
    await postponeErasure(postgres.query, cleared)
  }
  return count
}

const tombstoneDaysMax = 200
const tombstoneBatch = 1_000

/** Tombstones older than any job that could store their memory again. */
async function purgeTombstones({ postgres, mongo }: SweepBackend): Promise<number> {
  let count = 0
  for (const tombstoneDay of await oldTombstoneDays(postgres.query, tombstoneDaysMax)) {
    for (;;) {
      const purged = await deleteTombstonesBefore(mongo, tombstoneDay, tombstoneBatch)
      if (purged === 0) break
      count += purged
    }
    await deleteTombstoneDay(postgres.query, tombstoneDay)
  }
  return count
}

const strandedMinutes = 5

/**
 * Unfinished operations without a job: a worker that dies during a job's last try does not fail the
 * operation. The job is a dead letter, so the operation has failed until an operator redrives it.
 */
async function failStrandedOperations({ postgres, queue, log }: SweepBackend): Promise<number> {
  const unfinished = await unfinishedOperationsPage(postgres.query, strandedMinutes)
  const stranded = await operationsWithoutJob(postgres.query, unfinished)
  if (stranded.length === 0) return 0
  await postgres.transaction(tx => failOperations(tx, queue, stranded))
  log.error({ operations: stranded.slice(0, 20), count: stranded.length }, 'operations.stranded')
  return stranded.length
}
