import type { Backend } from '#shared/backend.ts'
import { sweepCleared } from '#shared/vault/delete/erase.ts'
import { bringAlong } from '#shared/vault/reembed/late-arrivals.ts'
import { storeAbandoned } from '#shared/vault/ingest/open-exchange.ts'
import { deleteGravesBefore } from '#shared/vault/delete/cleared.mongo.ts'
import { settleStranded } from '#shared/org/audit.ts'
import { bringIntoSpace } from '#shared/org/reembed-shared.ts'
import { dropStaleFiles } from '#shared/vault/bulk/files.postgres.ts'
import {
  dueErasures,
  forgetBurials,
  oldBurials,
  postponeErasure,
} from '#shared/vault/base/erasures.postgres.ts'
import { dueVaults } from '#shared/vault/base/expiries.postgres.ts'
import {
  dropOldAnswers,
  dropOldOperations,
  trimChanges,
  unfinishedOperations,
} from '#shared/operations/leftovers.postgres.ts'
import { failOperations } from '#shared/operations/operations.postgres.ts'
import { dropOldUnanswered } from '#shared/vault/ingest/open-exchanges.postgres.ts'
import { dropOldTurns } from '#shared/org/org-turns.postgres.ts'
import { dropOldRecalledTurns } from '#shared/vault/read/recalled-turns.postgres.ts'
import { purgeErasedAccounts } from '#shared/accounts/receipts.postgres.ts'
import { dropOldRetrievals } from '#shared/org/shared-retrievals.postgres.ts'
import { dropOldWrites } from '#shared/org/shared-writes.postgres.ts'
import { rollUpAccounts } from '#shared/billing/usage-accounts.postgres.ts'
import { rollUpUsage } from '#shared/billing/usage-sums.postgres.ts'
import { dropOldDeliveries } from '#shared/webhooks/deliveries.postgres.ts'
import { withoutJob } from '#shared/storage/queue/cancel-jobs.ts'

type Sweeping = Pick<
  Backend,
  'expiry' | 'postgres' | 'mongo' | 'log' | 'accept' | 'queue' | 'embedders' | 'usage' | 'now'
>

/** What is cleaned up, each bounded per run and safe to run at any time; each tells how much it found. */
const sweeps: Record<string, (backend: Sweeping) => Promise<number>> = {
  exchanges: storeAbandoned,
  erased: sweepErasures,
  over: removeEndedMemories,
  graves: purgeGraves,
  stranded: endStranded,
  answers: ({ postgres }) => dropOldAnswers(postgres.query),
  operations: ({ postgres }) => dropOldOperations(postgres.query),
  changes: ({ postgres }) => trimChanges(postgres.query),
  files: ({ postgres }) => dropStaleFiles(postgres.query),
  turns: ({ postgres }) => dropOldTurns(postgres.query),
  recalledTurns: ({ postgres }) => dropOldRecalledTurns(postgres.query),
  unansweredTurns: ({ postgres }) => dropOldUnanswered(postgres.query),
  sharedWrites: settleStranded,
  sharedSpaces: bringIntoSpace,
  movedVaults: bringAlong,
  sharedHistory: ({ postgres }) => dropOldWrites(postgres.query),
  sharedRetrievals: ({ postgres }) => dropOldRetrievals(postgres.query),
  erasedAccounts: ({ postgres }) => purgeErasedAccounts(postgres.query),
  webhooks: ({ postgres }) => dropOldDeliveries(postgres.query),
  usageDays: ({ postgres }) => rollUpUsage(postgres.query),
  accountDays: ({ postgres }) => rollUpAccounts(postgres.query),
}

/**
 * Runs every sweep once. One that fails holds up no other; the next run takes it up again.
 *
 * @returns what each found; those that failed are missing.
 */
export async function sweepAll(backend: Sweeping): Promise<Record<string, number>> {
  const found: Record<string, number> = {}
  for (const [name, run] of Object.entries(sweeps)) {
    try {
      found[name] = await run(backend)
    } catch (error) {
      backend.log.warn({ err: error, sweep: name }, 'sweep.failed')
    }
  }
  const level = Object.values(found).some(count => count > 0) ? 'info' : 'debug'
  backend.log[level](found, 'sweep.done')
  return found
}

const dueVaultsMax = 200
const overWithinMs = 30_000

/** What is over in vaults that nobody asks. */
async function removeEndedMemories({ postgres, expiry }: Sweeping): Promise<number> {
  const vaults = await dueVaults(postgres.query, dueVaultsMax)
  for (const vault of vaults) await expiry.removeOver(vault, overWithinMs)
  return vaults.length
}

const erasuresMax = 200

/** Work that was under way when a vault was cleared may have written there since. */
async function sweepErasures({ postgres, mongo }: Sweeping): Promise<number> {
  let found = 0
  for (const cleared of await dueErasures(postgres.query, erasuresMax)) {
    const { jobs, documents } = await sweepCleared({ postgres, mongo }, cleared)
    found += jobs + documents
    await postponeErasure(postgres.query, cleared)
  }
  return found
}

const burialsMax = 200
const gravesBatch = 1_000

/** Tombstones that no job can be old enough to meet. */
async function purgeGraves({ postgres, mongo }: Sweeping): Promise<number> {
  let found = 0
  for (const burials of await oldBurials(postgres.query, burialsMax)) {
    for (;;) {
      const purged = await deleteGravesBefore(mongo, burials, gravesBatch)
      if (purged === 0) break
      found += purged
    }
    await forgetBurials(postgres.query, burials)
  }
  return found
}

const strandedMinutes = 5

/**
 * Operations that wait for work no job will do: a worker that dies during a job's last try leaves its
 * operation as if it went on. The job is a dead letter by then, so the operation has failed until an
 * operator takes it up again.
 */
async function endStranded({ postgres, log }: Sweeping): Promise<number> {
  const unfinished = await unfinishedOperations(postgres.query, strandedMinutes)
  const stranded = await withoutJob(postgres.query, unfinished)
  if (stranded.length === 0) return 0
  await failOperations(postgres.query, stranded)
  log.error({ operations: stranded.slice(0, 20), count: stranded.length }, 'operations.stranded')
  return stranded.length
}
