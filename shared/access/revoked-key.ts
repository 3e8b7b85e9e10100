import type { MemoryKeyKind } from '#shared/access/key-row.postgres.ts'
import { recordAccountEvents } from '#shared/events/account-events.postgres.ts'
import { emitWebhookEvents } from '#shared/events/webhooks/emit.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'

/** A key that was live until the transaction revoked or deleted it. */
export type RevokedKey = {
  account: string
  masked: string
  name: string
  kind: MemoryKeyKind
  id: string
  org: string | null
  /** The product's id of the user whose vault it opened; null for any other vault. */
  externalId: string | null
}

/** The columns of `RevokedKey` in a row of `memory_keys`. */
export const revokedKeyColumns = `account, masked, name, kind, id, org,
  (select v.external_id from vaults v where v.id = vault) as "externalId"`

/** Records the account events `key.revoked`, and emits the webhook events of that name. */
export async function announceRevokedKeys(
  tx: Transaction,
  queue: Pick<Queue, 'send'>,
  keys: readonly RevokedKey[],
  actor: string,
): Promise<void> {
  await recordRevokedKeys(tx, keys, actor)
  await emitKeyRevoked(tx, queue, keys)
}

/** Records the account events `key.revoked`. */
export const recordRevokedKeys = (
  tx: Pick<Transaction, 'query'>,
  keys: readonly RevokedKey[],
  actor: string,
): Promise<void> =>
  recordAccountEvents(
    tx,
    keys.map(({ account, masked }) => ({ account, actor, action: 'key.revoked', subject: masked })),
  )

/** Emits the webhook events `key.revoked` of keys that stop working with the transaction. */
export const emitKeyRevoked = (
  tx: Transaction,
  queue: Pick<Queue, 'send'>,
  keys: readonly RevokedKey[],
): Promise<void> =>
  emitWebhookEvents(
    tx,
    queue,
    keys.map(({ account, masked, name, kind, id, org, externalId }) => ({
      account,
      event: 'key.revoked',
      data: { key: masked, name, kind, key_id: id, org_id: org, external_id: externalId },
    })),
  )
