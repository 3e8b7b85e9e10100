import { earliestExpiresAt, type Expiry } from '#shared/domain/expiry.ts'
import type { Postgres, Query } from '#shared/storage/postgres/connect.ts'
import {
  cancelScheduledExpiries,
  scheduleExpiries,
  findVaultRetention,
} from '#shared/vault/base/expiries.postgres.ts'
import { applyRetention } from '#shared/vault/base/expiries.mongo.ts'
import type { Stores } from '#shared/storage/stores.ts'
import { requireNothingExpired } from '#shared/access/caller.ts'
import { type KeyRow, findKey } from '#shared/access/key-row.postgres.ts'

/**
 * Writes memories that may expire, so that no reader misses the moment:
 *
 * 1. schedules the earliest expiry of each work;
 * 2. calls `write`, which writes the memories, applies the current retention and finalizes the work;
 * 3. cancels the schedule, since `findNextExpiry` now finds the memories themselves.
 *
 * When `write` throws, the schedule stays: the next run replaces it, `putNextExpiry` drops it after 15 minutes.
 */
export async function withExpiryProtocol<Result>(
  { postgres }: { postgres: Postgres },
  works: readonly { operation: string; vault: string; memories: readonly Expiry[] }[],
  write: () => Promise<Result>,
): Promise<Result> {
  const scheduled = works.flatMap(({ operation, vault, memories }) => {
    const expiresAt = earliestExpiresAt(memories)
    return expiresAt === undefined ? [] : [{ id: operation, vault, expiresAt }]
  })
  await scheduleExpiries(postgres, scheduled)
  const result = await write()
  const ids = scheduled.map(({ id }) => id)
  await cancelScheduledExpiries(postgres.query, ids)
  return result
}

/** Memories that are written and not yet finalized. */
type WrittenMemories = {
  vault: string
  epoch: number
  ids: readonly string[]
  /** The retention they were written under, in days; undefined where that is not known. */
  days: number | null | undefined
}

/**
 * Gives written memories the expiry of their account's current retention, if that has changed since they were
 * accepted. Call it before they are finalized: a later change finds them in the vault.
 *
 * @param query of the transaction that finalizes them
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

/** Like `applyCurrentRetention`, for a retention that was read before. */
export async function changeRetention(
  { postgres, mongo }: Stores,
  { vault, epoch, ids, days }: WrittenMemories & { days: number | null },
): Promise<void> {
  if (ids.length === 0) return
  if (days !== null) {
    // Their expiry may have passed already: now is early enough, and costs one scan of the vault.
    await scheduleExpiries(postgres, [{ id: ids[0]!, vault, expiresAt: Date.now() }])
  }
  await applyRetention(mongo, { vault, epoch }, ids, days)
}

export type ExpiryPurger = {
  /**
   * Removes the expired memories of a vault, so that no process sees what had expired at the call.
   *
   * @returns false when the purge takes longer than `withinMs`; it continues.
   */
  purgeExpired(vault: string, withinMs: number): Promise<boolean>
}

const purgeTimeoutMs = 5_000

/**
 * Finds a second key that a request names, after the expired memories of its vault are purged.
 *
 * @throws Refusal `unavailable` when they could not be purged.
 */
export async function findKeyAfterPurge(
  { postgres, expiry }: { postgres: Postgres; expiry: ExpiryPurger },
  hash: Buffer,
): Promise<KeyRow | undefined> {
  const row = await findKey(postgres.query, hash)
  if (!row?.hasExpired) return row
  if (await expiry.purgeExpired(row.vault, purgeTimeoutMs)) return findKey(postgres.query, hash)
  requireNothingExpired({ keyRow: row })
  return row
}
