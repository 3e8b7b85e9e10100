import { requireNothingExpired } from '#shared/access/caller.ts'
import { findKey, type KeyRow } from '#shared/access/key-row.postgres.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import type { ExpiryPurger } from '#shared/vault/base/expiry-purger.ts'

const purgeTimeoutMs = 5_000

/**
 * A second key that a request names, after the expired memories of its vault are purged.
 *
 * @returns undefined when there is no such key, or it is not active.
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
