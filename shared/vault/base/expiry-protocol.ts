import { earliestExpiresAt, type Expiry } from '#shared/domain/expiry.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import { cancelScheduledExpiries, scheduleExpiries } from '#shared/vault/base/expiries.postgres.ts'

/** Work that writes memories of one vault; `operation` identifies what is scheduled for it. */
export type ExpiringWork = { operation: string; vault: string; memories: readonly Expiry[] }

/**
 * Writes memories that may expire so that no reader misses the moment, whatever process dies:
 *
 * 1. schedules the earliest expiry of each work, before anything of it is written;
 * 2. calls `write`, which writes the memories, gives them the retention that holds by then
 *    (`applyCurrentRetention`) and finalizes the work;
 * 3. cancels the schedule, since `findNextExpiry` now finds the memories themselves.
 *
 * When `write` throws, the schedule stays: the next run replaces it, `putNextExpiry` drops it after
 * 15 minutes.
 *
 * @returns what `write` returns.
 */
export async function withExpiryProtocol<Result>(
  { postgres }: { postgres: Postgres },
  works: readonly ExpiringWork[],
  write: () => Promise<Result>,
): Promise<Result> {
  const scheduled = works.flatMap(({ operation, vault, memories }) => {
    const expiresAt = earliestExpiresAt(memories)
    return expiresAt === undefined ? [] : [{ id: operation, vault, expiresAt }]
  })
  await scheduleExpiries(postgres, scheduled)
  const result = await write()
  await cancelScheduledExpiries(
    postgres.query,
    scheduled.map(({ id }) => id),
  )
  return result
}
