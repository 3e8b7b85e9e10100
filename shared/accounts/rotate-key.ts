import { keyRotatedRefusal } from '#shared/access/caller.ts'
import { hashKey, maskKey } from '#shared/access/key.ts'
import { expireRotatedKey, insertKey } from '#shared/access/memory-keys.postgres.ts'
import { recordRevokedKeys, toKeyRevokedEvents } from '#shared/access/revoked-key.ts'
import { recordAccountEvent } from '#shared/events/account-events.postgres.ts'
import { mintSealedKey } from '#shared/access/user-keys.ts'
import type { Seal } from '#shared/core/seal.ts'
import type { Config } from '#shared/core/config.ts'
import { lockVaults } from '#shared/operations/vault-locks.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import { emitWebhookEvents } from '#shared/events/webhooks/emit.ts'

export type KeyRotation = {
  keyHash: Buffer
  /** The vault of the key. */
  vault: string
  /** As the account's events name who rotates. */
  actor: string
  name: string | undefined
  expiresAt: Date | null
  graceSeconds: number
}

export type RotatedKey = {
  id: string
  key: string
  name: string
  createdAt: Date
  previousExpiresAt: Date
}

/**
 * Creates a new key for the vault of an old one, which stops working now or after `graceSeconds`. The
 * memories of the vault stay.
 *
 * @throws Refusal `forbidden` when the old key is revoked, expired or rotated already.
 */
export async function rotateMemoryKey(
  tx: Transaction,
  { config, queue, seal }: { config: Config; queue: Queue; seal: Seal },
  { keyHash, vault, actor, name, expiresAt, graceSeconds }: KeyRotation,
): Promise<RotatedKey> {
  // What revokes every key of the vault takes the same lock: it does not miss the one that is made here.
  await lockVaults(tx, [vault])
  const previous = await expireRotatedKey(tx, keyHash, graceSeconds)
  if (!previous) throw keyRotatedRefusal()
  const { account, limitedAs, externalId } = previous
  if (previous.expiresSooner) await recordRevokedKeys(tx, [previous], actor)
  // Webhooks get no event of a key that works for `graceSeconds` more, now or when it expires.
  if (previous.hasExpired) await emitWebhookEvents(tx, queue, toKeyRevokedEvents([previous]))
  const { id, key, sealed } = mintSealedKey({ seal })
  const rotated = { id, key, name: name ?? previous.name }
  const createdAt = await insertKey(tx, {
    id,
    // The key of a user can be read again by the owner.
    sealed: externalId === null ? null : sealed,
    hash: hashKey(config.keyPepper, key),
    vault,
    account,
    kind: 'vault',
    name: rotated.name,
    masked: maskKey(key),
    expiresAt,
    limitedAs,
  })
  await recordAccountEvent(tx, { account, actor, action: 'key.rotated', subject: maskKey(key) })
  return { ...rotated, createdAt, previousExpiresAt: previous.expiresAt }
}
