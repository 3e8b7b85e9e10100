import { earliestEnd, isOver, type Ends } from '#shared/domain/expiry.ts'
import { buriedBy, levelGraves } from '#shared/vault/base/tombstones.mongo.ts'
import { applyRetention, buryUnborn } from '#shared/vault/base/expiries.mongo.ts'
import { recordBurial } from '#shared/vault/base/erasures.postgres.ts'
import {
  announceExpiries,
  retentionOf,
  withdrawExpiries,
} from '#shared/vault/base/expiries.postgres.ts'
import type { Query, Postgres } from '#shared/storage/postgres/connect.ts'
import type { IngestJob } from '#shared/domain/job-payloads.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Mongo } from '#shared/storage/mongo/connect.ts'

/** Memories that have been written and not yet settled. */
export type Written = {
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
export async function keepToPolicy(
  { postgres, mongo }: Stores,
  query: Query,
  { vault, epoch, ids, days }: Written,
): Promise<void> {
  const now = await retentionOf(query, vault)
  if (now !== days) await changeRetention({ postgres, mongo }, { vault, epoch, ids, days: now })
}

/** The same where the retention is known. */
export async function changeRetention(
  { postgres, mongo }: Stores,
  { vault, epoch, ids, days }: Written & { days: number | null },
): Promise<void> {
  if (ids.length === 0) return
  if (days !== null) {
    // However long ago they were stored: this is early enough, and costs the vault one look.
    await announceExpiries(postgres.query, [{ id: ids[0]!, vault, at: Date.now() }])
  }
  await applyRetention(mongo, { vault, epoch }, ids, days)
}

/** Work that writes memories. */
type Ending = Pick<IngestJob, 'operation' | 'vault'> & { memories: readonly Ends[] }

/**
 * Announces the ends of what is about to be written, if there are any.
 *
 * @returns the work of which there are, by `operation`.
 */
export async function announceEnds(
  { postgres }: { postgres: Postgres },
  jobs: readonly Ending[],
): Promise<string[]> {
  const announced = jobs.flatMap(({ operation, vault, memories }) => {
    const at = earliestEnd(memories)
    return at === undefined ? [] : [{ id: operation, vault, at }]
  })
  await announceExpiries(postgres.query, announced)
  return announced.map(({ id }) => id)
}

/** What was announced can be found by itself now. */
export const withdrawEnds = (
  { postgres }: { postgres: Postgres },
  ids: readonly string[],
): Promise<void> => withdrawExpiries(postgres.query, ids)

/** Ids, by operation. */
export type Unborn = ReadonlyMap<string, ReadonlySet<string>>

/**
 * Takes the ids of memories that were over before they could be stored.
 *
 * @returns those that are not to be stored for this reason: an earlier run may have stored some in time.
 */
export async function leaveUnborn(
  { mongo }: { mongo: Mongo },
  jobs: readonly IngestJob[],
): Promise<Unborn> {
  const unborn = new Map<string, Set<string>>()
  for (const job of jobs) {
    const over = job.memories.filter(memory => isOver(memory, Date.now())).map(({ id }) => id)
    if (over.length === 0) continue
    await buryUnborn(mongo, job, over)
    const buried = await buriedBy(mongo, job, over)
    unborn.set(job.operation, new Set(buried.map(({ id }) => id)))
  }
  return unborn
}

/** They are settled: nothing is left of them but that their ids are taken. */
export async function levelUnborn(
  { mongo, postgres }: Stores,
  jobs: readonly IngestJob[],
  unborn: Unborn,
): Promise<void> {
  for (const job of jobs) {
    const ids = unborn.get(job.operation)
    if (!ids || ids.size === 0) continue
    await recordBurial(postgres, job.vault)
    await levelGraves(mongo, job, [...ids])
  }
}
