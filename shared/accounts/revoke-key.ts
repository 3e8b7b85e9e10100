import { retireVaults } from '#shared/vault/delete/retire-vaults.postgres.ts'
import { Refusal } from '#shared/core/errors.ts'
import { noSuchKey } from '#shared/core/refusals.ts'
import { isUuid } from '#shared/core/ids.ts'
import { findAccountKey, hasActiveKey, revokeKey } from '#shared/access/memory-keys.postgres.ts'
import { announceRevokedKeys } from '#shared/access/revoked-key.ts'
import { recordAccountEvent } from '#shared/events/account-events.postgres.ts'
import { findOperationStatus } from '#shared/vault/base/erasures.postgres.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { VaultIndexes } from '#shared/search/index/vault-indexes.ts'

export type Revocation = {
  /** Of the key. */
  id: string
  /** Erases the vault of the key too. */
  erase: boolean
  /** The UUIDv7 of the erasure. */
  operation: string
}

export type RevocationRequester = {
  account: string
  /** As the account's events name it. */
  actor: string
  keyHash: Buffer
}

/**
 * Revokes a key of an account: it is refused from the next request on. Its vault stays, in bills and
 * exports too; with `erase` the vault is invisible when this resolves, and a job removes it from both
 * stores. A second run changes nothing.
 *
 * @throws Refusal `missing` when the account has no such key; `conflict` for the key that asks, and
 *   when the vault is to go and another key opens it.
 */
export async function revokeAccountKey(
  {
    postgres,
    queue,
    vaultIndexes,
  }: { postgres: Postgres; queue: Queue; vaultIndexes: VaultIndexes },
  { account, actor, keyHash }: RevocationRequester,
  { id, erase, operation }: Revocation,
): Promise<void> {
  const key = isUuid(id) ? await findAccountKey(postgres.query, account, id) : undefined
  if (!key) throw noSuchKey()
  const { hash, vault, masked: subject } = key
  if (hash.equals(keyHash)) {
    throw new Refusal(
      'conflict',
      'A key does not end itself',
      'POST /v1/keys/rotate puts another in its place; or use another key of the account, or its admin',
    )
  }
  await postgres.transaction(async tx => {
    const hasBegun = erase && (await findOperationStatus(tx.query, operation)) !== undefined
    // Vaults are locked before keys, in the order of `eraseAccount`.
    if (erase && !hasBegun) {
      await retireVaults(tx, { queue }, { operation, account, keyHash, vaults: [vault] })
      await recordAccountEvent(tx, { account, actor, action: 'vault.cleared', subject })
    }
    const revoked = await revokeKey(tx.query, account, hash)
    if (revoked) await announceRevokedKeys(tx, queue, [revoked], actor)
    if (erase && (await hasActiveKey(tx, vault))) {
      throw new Refusal(
        'conflict',
        'Another key opens this vault, which cannot be erased with this one',
        'Revoke the other key first, or leave erase out',
      )
    }
  })
  if (erase) vaultIndexes.forget(vault)
}
