import { requireNothingOver } from '#shared/access/caller.ts'
import { findKey, type KeyRow } from '#shared/access/keys.postgres.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import type { Expiry } from '#shared/vault/base/expiry-purger.ts'

const withinMs = 5_000

/**
 * A key that a request names beside its own, once nothing of its vault is over.
 *
 * @returns undefined when there is no such key, or it has ended.
 * @throws Refusal `unavailable` when what is over could not be removed.
 */
export async function currentKey(
  { postgres, expiry }: { postgres: Postgres; expiry: Expiry },
  hash: Buffer,
): Promise<KeyRow | undefined> {
  const row = await findKey(postgres.query, hash)
  if (!row?.hasOver) return row
  if (await expiry.removeOver(row.vault, withinMs)) return findKey(postgres.query, hash)
  requireNothingOver({ row })
  return row
}
