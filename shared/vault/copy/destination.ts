import { Refusal } from '#shared/core/errors.ts'
import type { Caller } from '#shared/access/caller.ts'
import { hashKey, maskKey, parseKey, permissionsByMode } from '#shared/access/key.ts'
import { findKeyAfterPurge } from '#shared/vault/base/find-key-after-purge.ts'
import { isOrganizationKey } from '#shared/domain/member-scope.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import type { Config } from '#shared/core/config.ts'
import type { ExpiryPurger } from '#shared/vault/base/expiry-purger.ts'

/** The vault that copies are written to. */
export type Destination = {
  vault: string
  epoch: number
  /** The embedding model of the vault; null: the default model. */
  embeddings: string | null
  keyHash: Buffer
  /** Truncated. */
  key: string
}

/**
 * The vault that a destination key opens. Source and destination may belong to different accounts: a client
 * that has both keys may copy.
 *
 * @throws Refusal `invalid` for a key that does not exist or has ended, one that may not write, and one
 *   that opens the source vault: the same key, or one it was rotated to.
 */
export async function resolveDestination(
  backend: { postgres: Postgres; config: Config; expiry: ExpiryPurger },
  source: Caller,
  presented: string,
): Promise<Destination> {
  const parsed = parseKey(presented)
  if (!parsed) throw unknownKey()
  if (!permissionsByMode[parsed.mode].store) {
    throw new Refusal(
      'invalid',
      `destination_key is used with :${parsed.mode}, which does not store memory`,
      'Use the key without a suffix or with :write',
    )
  }
  const keyHash = hashKey(backend.config.keyPepper, parsed.key)
  const row = await findKeyAfterPurge(backend, keyHash)
  if (!row) throw unknownKey()
  if (row.memberScope && isOrganizationKey(row.memberScope)) {
    throw new Refusal(
      'invalid',
      'destination_key is the key of an organization, which does not store memory',
      'Use the key of a member, or of an account',
    )
  }
  if (row.vault === source.scope.vault) {
    throw new Refusal(
      'invalid',
      'destination_key opens the same vault as the key of the request',
      'Authenticate with the key to copy from, and name another one to copy to',
    )
  }
  const { vault, epoch, embeddingModel } = row
  return { vault, epoch, embeddings: embeddingModel, keyHash, key: maskKey(parsed.key) }
}

const unknownKey = (): Refusal =>
  new Refusal(
    'invalid',
    'destination_key is no valid Memory Key',
    'Name a Memory Key that exists and has not ended',
  )
