import { setTimeout as delay } from 'node:timers/promises'
import { executeDeletion } from '#shared/vault/delete/delete-memories.ts'
import { Refusal } from '#shared/core/errors.ts'
import { withTimeout } from '#shared/core/with-timeout.ts'
import { mintId } from '#shared/core/ids.ts'
import { findNextExpiry, findExpiredIds } from '#shared/vault/base/expiries.mongo.ts'
import {
  readExpiryState,
  findVaultOwner,
  putNextExpiry,
  type ExpiryState,
} from '#shared/vault/base/expiries.postgres.ts'
import { acceptOperation } from '#shared/operations/accept-operations.ts'
import { lockVault } from '#shared/vault/base/vaults.postgres.ts'
import { findJobPayload } from '#shared/storage/queue/cleared-jobs.ts'
import type { DeleteIdsJob } from '#shared/domain/job-payloads.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { Log } from '#shared/core/log.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import type { ExpiryPurger } from '#shared/vault/base/expiry-protocol.ts'

type PurgeBackend = Stores & { queue: Queue; log: Log }

/** Memories per operation: 2,000 take 0.3 s. */
const batchMax = 2_000

/** By then the process that accepted a purge has done it, or has died. */
const jobDelaySeconds = 2

/** How often the purge of another process is polled, and after how long that process is taken to be dead. */
const pollMs = 50
const runnerTimeoutMs = 1_000
/** No caller waits as long; the next caller continues. */
const purgeTimeoutMs = 30_000

/** Scans of a vault that changes all the time and has nothing expired; the next caller scans again. */
const scansMax = 5

/**
 * Deletes expired memories; one purge per vault and process runs at a time. Nothing in a vault expires before
 * `vaults.next_expiry`: other vaults cost only that column.
 */
export function createExpiryPurger(backend: PurgeBackend): ExpiryPurger {
  const purgesInFlight = new Map<string, Promise<boolean>>()

  const begin = (vault: string): Promise<boolean> => {
    const purge = purgeAllExpired(backend, vault)
      .then(() => true)
      .catch((error: unknown) => {
        backend.log.warn({ err: error, vault }, 'expire.not-yet')
        return false
      })
      .finally(() => purgesInFlight.delete(vault))
    purgesInFlight.set(vault, purge)
    return purge
  }

  return {
    async purgeExpired(vault, withinMs) {
      const inFlight = purgesInFlight.get(vault)
      // The purge in flight may have read the vault before this call: another one follows, which is cheap.
      const work = inFlight
        ? inFlight.then(() => purgesInFlight.get(vault) ?? begin(vault))
        : begin(vault)
      return withTimeout(work, withinMs, () => false)
    },
  }
}

/**
 * Deletes expired memories in batches, each under an operation that a job finishes if this process dies; then
 * stores when the next memory expires.
 *
 * @throws Refusal `unavailable` when a store is out of reach, or the purge takes more than 30 s.
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
      if (job === 'no-owner') return
      if (job) await executeDeletion(backend, job)
      continue
    }
    scans++
    if (await updateNextExpiry(backend, vault, state)) return
  }
}

/** Waits for a purge of another process, and finishes it when that takes longer than a second. */
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
 * Accepts the deletion of expired memories, unless another process has done so since `seen` was read, or the
 * vault is being retired and has no key.
 */
function acceptPurge(
  { postgres, queue }: { postgres: Postgres; queue: Queue },
  vault: string,
  seen: ExpiryState,
  ids: string[],
): Promise<DeleteIdsJob | 'no-owner' | null> {
  return postgres.transaction(async tx => {
    await lockVault(tx, vault)
    // A separate statement: its snapshot must begin after the lock was granted.
    const state = await readExpiryState(tx.query, vault)
    const owner = await findVaultOwner(tx.query, vault)
    if (!state || state.last !== seen.last) return null
    if (!owner) return 'no-owner'
    const operation = mintId()
    const { epoch, now } = state
    const job: DeleteIdsJob = { operation, vault, epoch, ids, overAt: now }
    await acceptOperation(tx, queue, {
      operation: {
        ...owner,
        id: operation,
        vault,
        kind: 'expire',
        total: ids.length,
        started: true,
        billing: 'never',
      },
      queueName: 'delete-ids',
      jobs: () => [{ id: operation, data: job, afterSeconds: jobDelaySeconds }],
    })
    return job
  })
}

/** @returns false when the vault has changed since its revision was read. */
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
