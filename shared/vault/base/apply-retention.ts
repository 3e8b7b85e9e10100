import { earliestExpiresAt, isExpired, type Expiry } from '#shared/domain/expiry.ts'
import { findTombstonedBy, finalizeTombstones } from '#shared/vault/base/tombstones.mongo.ts'
import { applyRetention, tombstoneAlreadyExpired } from '#shared/vault/base/expiries.mongo.ts'
import { recordTombstoneDay } from '#shared/vault/base/erasures.postgres.ts'
import {
  scheduleExpiries,
  findVaultRetention,
  cancelScheduledExpiries,
} from '#shared/vault/base/expiries.postgres.ts'
import type { Query, Postgres } from '#shared/storage/postgres/connect.ts'
import type { IngestJob } from '#shared/domain/job-payloads.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'

/** Memories that have been written and not yet settled. */
export type WrittenMemories = {
  vault: string
  epoch: number
  ids: readonly string[]
  /** The retention they were written under, in days; undefined where that is not known. */
  days: number | null | undefined
}

/**
 * Gives memories the end that the retention of their account leads to now, should it have been decided
 * otherwise since they were promised. Call it when they are written and before they are settled: what
 * is decided later finds them.
 *
 * @param query of the transaction that settles them
 */
export async function applyCurrentRetention(
  { postgres, mongo }: Stores,
  query: Query,
  { vault, epoch, ids, days }: WrittenMemories,
): Promise<void> {
  const currentDays = await findVaultRetention(query, vault)
  if (currentDays !== days)
    await changeRetention({ postgres, mongo }, { vault, epoch, ids, days: currentDays })
}

/** The same where the retention is known. */
export async function changeRetention(
  { postgres, mongo }: Stores,
  { vault, epoch, ids, days }: WrittenMemories & { days: number | null },
): Promise<void> {
  if (ids.length === 0) return
  if (days !== null) {
    // However long ago they were stored: this is early enough, and costs the vault one look.
    await scheduleExpiries(postgres.query, [{ id: ids[0]!, vault, expiresAt: Date.now() }])
  }
  await applyRetention(mongo, { vault, epoch }, ids, days)
}

/** Work that writes memories. */
type ExpiringWork = Pick<IngestJob, 'operation' | 'vault'> & { memories: readonly Expiry[] }

/**
 * Announces the ends of what is about to be written, if there are any.
 *
 * @returns the work of which there are, by `operation`.
 */
export async function scheduleExpiry(
  { postgres }: { postgres: Postgres },
  jobs: readonly ExpiringWork[],
): Promise<string[]> {
  const announced = jobs.flatMap(({ operation, vault, memories }) => {
    const at = earliestExpiresAt(memories)
    return at === undefined ? [] : [{ id: operation, vault, expiresAt: at }]
  })
  await scheduleExpiries(postgres.query, announced)
  return announced.map(({ id }) => id)
}

/** What was announced can be found by itself now. */
export const cancelScheduledExpiry = (
  { postgres }: { postgres: Postgres },
  ids: readonly string[],
): Promise<void> => cancelScheduledExpiries(postgres.query, ids)

/** Ids, by operation. */
export type AlreadyExpiredIds = ReadonlyMap<string, ReadonlySet<string>>

/**
 * Takes the ids of memories that were over before they could be stored.
 *
 * @returns those that are not to be stored for this reason: an earlier run may have stored some in time.
 */
export async function skipAlreadyExpired(
  { mongo }: { mongo: Mongo },
  jobs: readonly IngestJob[],
): Promise<AlreadyExpiredIds> {
  const alreadyExpired = new Map<string, Set<string>>()
  for (const job of jobs) {
    const expiredIds = job.memories
      .filter(memory => isExpired(memory, Date.now()))
      .map(({ id }) => id)
    if (expiredIds.length === 0) continue
    await tombstoneAlreadyExpired(mongo, job, expiredIds)
    const tombstoned = await findTombstonedBy(mongo, job, expiredIds)
    alreadyExpired.set(job.operation, new Set(tombstoned.map(({ id }) => id)))
  }
  return alreadyExpired
}

/** They are settled: nothing is left of them but that their ids are taken. */
export async function finalizeSkipped(
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
