import { isExpired } from '#shared/domain/expiry.ts'
import type { IngestJob } from '#shared/domain/job-payloads.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'
import type { Stores } from '#shared/storage/stores.ts'
import { recordTombstoneDay } from '#shared/vault/base/erasures.postgres.ts'
import { tombstoneAlreadyExpired } from '#shared/vault/base/expiries.mongo.ts'
import { finalizeTombstones, findTombstonedBy } from '#shared/vault/base/tombstones.mongo.ts'

/** Ids of memories that expired before they were stored, by operation. */
export type AlreadyExpiredIds = ReadonlyMap<string, ReadonlySet<string>>

/**
 * Writes tombstones in place of memories that have expired before they were stored.
 *
 * @returns the ids not to store; an earlier run may have stored some of the expired ones in time.
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

/** Reduces their tombstones to the taken ids. Call it when the operations are finalized. */
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
