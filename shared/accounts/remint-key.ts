import {
  findAccountKey,
  findReplaceableKey,
  revokeVaultKeys,
  type ReplaceableKey,
} from '#shared/access/account-keys.postgres.ts'
import { hashKey, maskKey } from '#shared/access/key.ts'
import { insertKey } from '#shared/access/memory-keys.postgres.ts'
import { recordRevokedKeys, toKeyRevokedEvents } from '#shared/access/revoked-key.ts'
import { mintSealedKey } from '#shared/access/user-keys.ts'
import type { Config } from '#shared/core/config.ts'
import { Refusal } from '#shared/core/errors.ts'
import { isUuid } from '#shared/core/ids.ts'
import type { Seal } from '#shared/core/seal.ts'
import { recordAccountEvent } from '#shared/events/account-events.postgres.ts'
import { emitWebhookEvents } from '#shared/events/webhooks/emit.ts'
import { lockVaults } from '#shared/operations/vault-locks.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'

export type KeyReplacement = {
  account: string
  /** As the account's events name who asks. */
  actor: string
  /** Of the key that is lost. */
  keyId: string
  name: string | undefined
  expiresAt: Date | null
}

/**
 * Creates another key for the vault of a lost one, and revokes every key that the vault had. What is
 * remembered stays.
 *
 * @throws Refusal `missing` when the account has no such key; `conflict` for a key that acts for the account,
 *   and when the vault was erased.
 */
export async function remintKey(
  tx: Transaction,
  { config, queue, seal }: { config: Config; queue: Queue; seal: Seal },
  { account, actor, keyId, name, expiresAt }: KeyReplacement,
) {
  const lost = await lockReplaceableKey(tx, account, keyId)
  const revoked = await revokeVaultKeys(tx, lost.vault)
  await recordRevokedKeys(tx, revoked, actor)
  await emitWebhookEvents(tx, queue, toKeyRevokedEvents(revoked))
  const { id, key, sealed } = mintSealedKey({ seal })
  const replacement = { id, key, name: name ?? lost.name, expiresAt, externalId: lost.externalId }
  const createdAt = await insertKey(tx, {
    id,
    hash: hashKey(config.keyPepper, key),
    vault: lost.vault,
    account,
    kind: 'vault',
    name: replacement.name,
    masked: maskKey(key),
    expiresAt,
    limitedAs: lost.limitedAs,
    sealed: lost.externalId === null ? null : sealed,
  })
  await recordAccountEvent(tx, { account, actor, action: 'key.reminted', subject: maskKey(key) })
  return { ...replacement, createdAt, revoked: revoked.length }
}

/** The key, with its vault locked: an erasure of the vault has been committed or waits. */
async function lockReplaceableKey(
  tx: Transaction,
  account: string,
  keyId: string,
): Promise<ReplaceableKey> {
  const known = isUuid(keyId) ? await findAccountKey(tx.query, account, keyId) : undefined
  if (known) await lockVaults(tx, [known.vault])
  const key = known && (await findReplaceableKey(tx, account, keyId))
  if (!key) throw new Refusal('missing', 'No such key', 'GET /v1/keys lists those of the account')
  if (key.isOwnerVault) {
    throw new Refusal(
      'conflict',
      'This key acts for the account',
      'POST /v1/keys/rotate, asked with it, puts another in its place',
    )
  }
  if (key.isErased) {
    throw new Refusal(
      'conflict',
      'The vault of this key was erased',
      'POST /v1/keys makes a key with an empty vault',
    )
  }
  return key
}
