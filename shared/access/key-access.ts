import type { KeyRow } from '#shared/access/key-row.postgres.ts'
import { createLastUseTracker, type LastUseTracker } from '#shared/access/last-use-tracker.ts'
import { findKeys } from '#shared/access/memory-keys.postgres.ts'
import {
  findUserKeys,
  type AccountUser,
  type UserKeyRow,
} from '#shared/access/user-keys.postgres.ts'
import { RecentProviderKeys } from '#shared/access/recent-provider-keys.ts'
import { VerifiedKeys } from '#shared/access/verified-keys.ts'
import { batchLoader } from '#shared/core/batch-loader.ts'
import type { Log } from '#shared/core/log.ts'
import type { Seal } from '#shared/core/seal.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'

export type KeyAccess = {
  /** Looks a Memory Key up by its hash; requests that arrive together share a read. */
  findKey: (hash: Buffer) => Promise<KeyRow | undefined>
  /** Looks a user of an account up by the product's id; requests that arrive together share a read. */
  findUserKey: (user: AccountUser) => Promise<UserKeyRow | undefined>
  /** Keys found in the last minute. */
  verifiedKeys: VerifiedKeys
  /** Provider keys found in the last second. */
  providerKeys: RecentProviderKeys
  lastUsed: LastUseTracker
}

/** What verifies keys; a key that was found lately is known while Postgres is away. */
export function createKeyAccess(
  { postgres, seal }: { postgres: Postgres; seal: Seal },
  log: Log,
): KeyAccess {
  const verifiedKeys = new VerifiedKeys()
  const lastUsed = createLastUseTracker(postgres.query, log)
  const findKey = batchLoader(
    async (hashes: readonly Buffer[]) => {
      const readAt = performance.now()
      const rows = await findKeys(postgres.query, hashes)
      rows.forEach((row, n) => verifiedKeys.note(hashes[n]!, row, readAt))
      // An account's own keys are listed nowhere.
      rows.forEach((row, n) => row && row.kind !== 'vault' && lastUsed.touch(hashes[n]!))
      return rows
    },
    { concurrency: 2, batchMax: 200 },
  )
  const findUserKey = batchLoader((users: AccountUser[]) => findUserKeys(postgres.query, users), {
    concurrency: 2,
    batchMax: 200,
  })
  const providerKeys = new RecentProviderKeys({ postgres, seal })
  return { findKey, findUserKey, verifiedKeys, providerKeys, lastUsed }
}
