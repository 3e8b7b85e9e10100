import { setTimeout as delay } from 'node:timers/promises'
import { deleteMemories } from '#shared/vault/delete/delete-ids.ts'
import { Refusal } from '#shared/core/errors.ts'
import { mintId } from '#shared/core/ids.ts'
import { earliestExpiry, overIds } from '#shared/vault/base/expiries.mongo.ts'
import {
  expiryStanding,
  holderOf,
  putNextExpiry,
  type ExpiryStanding,
} from '#shared/vault/base/expiries.postgres.ts'
import { billLater } from '#shared/billing/deferred-bill.postgres.ts'
import { reportProgress } from '#shared/operations/operation-rows.postgres.ts'
import { insertOperations, unbilled } from '#shared/operations/operations.postgres.ts'
import { lockVault } from '#shared/vault/base/vault-lock.postgres.ts'
import { payloadOf } from '#shared/storage/queue/cancel-jobs.ts'
import type { DeleteIdsJob } from '#shared/domain/job-payloads.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { Log } from '#shared/core/log.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import type { Expiry } from '#shared/vault/base/expiry-purger.ts'

type Removing = Stores & { queue: Queue; log: Log }

/** What one operation removes: 2,000 take some 0.3 s. */
const batchMax = 2_000

/** By then whoever promised a removal has done it, or has died. */
const doneAfterSeconds = 2

/** A removal by another process is looked at this often; after so long it is taken to have died. */
const lookAgainMs = 50
const aliveMs = 1_000
/** Nobody waits as long; whoever asks next goes on. */
const patienceMs = 30_000

/** Looks at a vault that is changed all the time: nothing is over there, and the next to ask looks again. */
const looksMax = 5

/**
 * Removes what is over, one vault at a time and process. A vault knows the moment before which nothing of
 * it is over (`vaults.next_expiry`), so that those where nothing is cost no more than that column in a
 * read that is made anyway.
 */
export function createExpiry(backend: Removing): Expiry {
  const removing = new Map<string, Promise<boolean>>()

  const begin = (vault: string): Promise<boolean> => {
    const begun = removeAllOver(backend, vault)
      .then(() => true)
      .catch((error: unknown) => {
        backend.log.warn({ err: error, vault }, 'expire.not-yet')
        return false
      })
      .finally(() => removing.delete(vault))
    removing.set(vault, begun)
    return begun
  }

  return {
    async removeOver(vault, withinMs) {
      const underway = removing.get(vault)
      // What it has looked at may be older than this question; it is seldom asked for at once, and cheap.
      const work = underway
        ? underway.then(() => removing.get(vault) ?? begin(vault))
        : begin(vault)
      const late = Promise.withResolvers<boolean>()
      const timer = setTimeout(() => late.resolve(false), withinMs)
      try {
        return await Promise.race([work, late.promise])
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
export async function removeAllOver(backend: Removing, vault: string): Promise<void> {
  const { postgres, mongo } = backend
  const until = Date.now() + patienceMs
  for (let looks = 0; looks < looksMax;) {
    if (Date.now() > until) throw new Refusal('unavailable', 'What is over is still being removed')
    const standing = await expiryStanding(postgres.query, vault)
    if (!standing?.due) return
    if (standing.running) {
      await finishRemoval(backend, vault, standing.last!)
      continue
    }
    const ids = await overIds(mongo, { vault, epoch: standing.epoch }, standing.now, batchMax)
    if (ids.length > 0) {
      const job = await promiseRemoval(backend, vault, standing, ids)
      if (job === 'nobody') return
      if (job) await deleteMemories(backend, job)
      continue
    }
    looks++
    if (await lookAhead(backend, vault, standing)) return
  }
}

/** Waits for a removal under way elsewhere, and does what is left of it when that takes long. */
async function finishRemoval(backend: Removing, vault: string, operation: string): Promise<void> {
  const { query } = backend.postgres
  for (const until = Date.now() + aliveMs; Date.now() < until;) {
    await delay(lookAgainMs)
    const standing = await expiryStanding(query, vault)
    if (!standing?.running || standing.last !== operation) return
  }
  const job = await payloadOf(query, 'delete-ids', operation)
  if (job) await deleteMemories(backend, job)
}

/**
 * Promises to remove what was found, unless somebody else has meanwhile. A vault without a key is on its
 * way out as a whole.
 */
function promiseRemoval(
  { postgres, queue }: { postgres: Postgres; queue: Queue },
  vault: string,
  seen: ExpiryStanding,
  ids: string[],
): Promise<DeleteIdsJob | 'nobody' | null> {
  return postgres.transaction(async tx => {
    await lockVault(tx, vault)
    // A statement of its own: only what begins after the lock is held sees who held it before.
    const standing = await expiryStanding(tx.query, vault)
    const holder = await holderOf(tx.query, vault)
    if (!standing || standing.last !== seen.last) return null
    if (!holder) return 'nobody'
    const operation = mintId()
    await insertOperations(tx, [
      {
        ...holder,
        ...unbilled,
        id: operation,
        vault,
        kind: 'expire',
        awaited: false,
        session: null,
        total: ids.length,
      },
    ])
    await billLater(tx.query, operation)
    await reportProgress(tx.query, operation, { done: 0 })
    const { epoch, pending, now } = standing
    const job: DeleteIdsJob = { operation, vault, epoch, ids, overAt: now }
    const promised = { id: operation, data: job, priority: -pending }
    await queue.send(tx, 'delete-ids', [{ ...promised, afterSeconds: doneAfterSeconds }])
    return job
  })
}

/** @returns false when the vault has changed meanwhile. */
async function lookAhead(
  { postgres, mongo }: Stores,
  vault: string,
  { epoch, revision }: ExpiryStanding,
): Promise<boolean> {
  const earliest = await earliestExpiry(mongo, { vault, epoch })
  return postgres.transaction(async tx => {
    await lockVault(tx, vault)
    return putNextExpiry(tx, vault, { revision, earliest })
  })
}
