import { requireNothingExpired } from '#shared/access/caller.ts'
import { findKey, type KeyRow } from '#shared/access/memory-keys.postgres.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import type { ExpiryPurger } from '#shared/vault/base/expiry-purger.ts'

const purgeTimeoutMs = 5_000

/**
 * A key that a request names beside its own, once nothing of its vault is over.
 *
 * @returns undefined when there is no such key, or it has ended.
 * @throws Refusal `unavailable` when what is over could not be removed.
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
