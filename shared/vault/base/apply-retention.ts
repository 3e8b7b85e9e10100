import { applyRetention } from '#shared/vault/base/expiries.mongo.ts'
import { scheduleExpiries, findVaultRetention } from '#shared/vault/base/expiries.postgres.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'
import type { Stores } from '#shared/storage/stores.ts'

/** Memories that are written and not yet finalized. */
export type WrittenMemories = {
  vault: string
  epoch: number
  ids: readonly string[]
  /** The retention they were written under, in days; undefined where that is not known. */
  days: number | null | undefined
}

/**
 * Gives memories the expiry of their account's current retention, where it has changed since they were
 * accepted. Call it between writing and finalizing them: a later change finds them in the vault.
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

/** Like `applyCurrentRetention`, for a retention the caller has read; null where there is none. */
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
