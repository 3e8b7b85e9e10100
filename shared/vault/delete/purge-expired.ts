import { setTimeout as delay } from 'node:timers/promises'
import { executeDeletion } from '#shared/vault/delete/delete-memories.ts'
import { Refusal } from '#shared/core/errors.ts'
import { mintId } from '#shared/core/ids.ts'
import { findNextExpiry, findExpiredIds } from '#shared/vault/base/expiries.mongo.ts'
import {
  readExpiryState,
  findVaultOwner,
  putNextExpiry,
  type ExpiryState,
} from '#shared/vault/base/expiries.postgres.ts'
import { deferBilling } from '#shared/billing/deferred-bill.postgres.ts'
import { reportProgress } from '#shared/operations/operation-rows.postgres.ts'
import { insertOperations, zeroUsage } from '#shared/operations/operations.postgres.ts'
import { lockVault } from '#shared/vault/base/vault-state.postgres.ts'
import { findJobPayload } from '#shared/storage/queue/cleared-jobs.ts'
import type { DeleteIdsJob } from '#shared/domain/job-payloads.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { Log } from '#shared/core/log.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import type { ExpiryPurger } from '#shared/vault/base/expiry-purger.ts'

type PurgeBackend = Stores & { queue: Queue; log: Log }

/** What one operation removes: 2,000 take some 0.3 s. */
const batchMax = 2_000

/** By then whoever promised a removal has done it, or has died. */
const jobDelaySeconds = 2

/** A removal by another process is looked at this often; after so long it is taken to have died. */
const pollMs = 50
const runnerTimeoutMs = 1_000
/** Nobody waits as long; whoever asks next goes on. */
const purgeTimeoutMs = 30_000

/** Looks at a vault that is changed all the time: nothing is over there, and the next to ask looks again. */
const scansMax = 5

/**
 * Removes what is over, one vault at a time and process. A vault knows the moment before which nothing of
 * it is over (`vaults.next_expiry`), so that those where nothing is cost no more than that column in a
 * read that is made anyway.
 */
export function createExpiryPurger(backend: PurgeBackend): ExpiryPurger {
  const purgesInFlight = new Map<string, Promise<boolean>>()

  const begin = (vault: string): Promise<boolean> => {
    const begun = purgeAllExpired(backend, vault)
      .then(() => true)
      .catch((error: unknown) => {
        backend.log.warn({ err: error, vault }, 'expire.not-yet')
        return false
      })
      .finally(() => purgesInFlight.delete(vault))
    purgesInFlight.set(vault, begun)
    return begun
  }

  return {
    async purgeExpired(vault, withinMs) {
      const inFlight = purgesInFlight.get(vault)
      // What it has looked at may be older than this question; it is seldom asked for at once, and cheap.
      const work = inFlight
        ? inFlight.then(() => purgesInFlight.get(vault) ?? begin(vault))
        : begin(vault)
      const timeout = Promise.withResolvers<boolean>()
      const timer = setTimeout(() => timeout.resolve(false), withinMs)
      try {
        return await Promise.race([work, timeout.promise])
      } finally {
        clearTimeout(timer)
      }
    },
  }
}

/**
 * Removes what is over, a batch after the other, each under an operation of its own that a job finishes
 * should this process die; then says when the next memory will be over.
 *
 * @throws Refusal `unavailable` when a store is out of reach, or another process does not get done.
 */
export async function purgeAllExpired(backend: PurgeBackend, vault: string): Promise<void> {
  const { postgres, mongo } = backend
  const until = Date.now() + purgeTimeoutMs
  for (let scans = 0; scans < scansMax;) {
    if (Date.now() > until) throw new Refusal('unavailable', 'What is over is still being removed')
    const state = await readExpiryState(postgres.query, vault)
    if (!state?.due) return
    if (state.running) {
      await finishRunningPurge(backend, vault, state.last!)
      continue
    }
    const ids = await findExpiredIds(mongo, { vault, epoch: state.epoch }, state.now, batchMax)
    if (ids.length > 0) {
      const job = await acceptPurge(backend, vault, state, ids)
      if (job === 'nobody') return
      if (job) await executeDeletion(backend, job)
      continue
    }
    scans++
    if (await updateNextExpiry(backend, vault, state)) return
  }
}

/** Waits for a removal under way elsewhere, and does what is left of it when that takes long. */
async function finishRunningPurge(
  backend: PurgeBackend,
  vault: string,
  operation: string,
): Promise<void> {
  const { query } = backend.postgres
  for (const until = Date.now() + runnerTimeoutMs; Date.now() < until;) {
    await delay(pollMs)
    const state = await readExpiryState(query, vault)
    if (!state?.running || state.last !== operation) return
  }
  const job = await findJobPayload(query, 'delete-ids', operation)
  if (job) await executeDeletion(backend, job)
}

/**
 * Promises to remove what was found, unless somebody else has meanwhile. A vault without a key is on its
 * way out as a whole.
 */
function acceptPurge(
  { postgres, queue }: { postgres: Postgres; queue: Queue },
  vault: string,
  seen: ExpiryState,
  ids: string[],
): Promise<DeleteIdsJob | 'nobody' | null> {
  return postgres.transaction(async tx => {
    await lockVault(tx, vault)
    // A statement of its own: only what begins after the lock is held sees who held it before.
    const state = await readExpiryState(tx.query, vault)
    const holder = await findVaultOwner(tx.query, vault)
    if (!state || state.last !== seen.last) return null
    if (!holder) return 'nobody'
    const operation = mintId()
    await insertOperations(tx, [
      {
        ...holder,
        ...zeroUsage,
        id: operation,
        vault,
        kind: 'expire',
        awaited: false,
        session: null,
        total: ids.length,
      },
    ])
    await deferBilling(tx.query, operation)
    await reportProgress(tx.query, operation, { done: 0 })
    const { epoch, pending, now } = state
    const job: DeleteIdsJob = { operation, vault, epoch, ids, overAt: now }
    const queuedJob = { id: operation, data: job, priority: -pending }
    await queue.send(tx, 'delete-ids', [{ ...queuedJob, afterSeconds: jobDelaySeconds }])
    return job
  })
}

/** @returns false when the vault has changed meanwhile. */
async function updateNextExpiry(
  { postgres, mongo }: Stores,
  vault: string,
  { epoch, revision }: ExpiryState,
): Promise<boolean> {
  const earliest = await findNextExpiry(mongo, { vault, epoch })
  return postgres.transaction(async tx => {
    await lockVault(tx, vault)
    return putNextExpiry(tx, vault, { revision, earliest })
  })
}
