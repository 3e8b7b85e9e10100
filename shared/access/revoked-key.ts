import { recordAccountEvents } from '#shared/events/account-events.postgres.ts'
import type { Transaction } from '#shared/storage/postgres/connect.ts'

/** A key that was live until the transaction revoked or deleted it. */
export type RevokedKey = {
  account: string
  masked: string
  name: string
  kind: 'vault' | 'member' | 'user'
  id: string
  org: string | null
  /** The product's id of the user whose vault it opened; null for any other vault. */
  externalId: string | null
}

/** Of `RevokedKey`, in a row of `memory_keys`. */
export const revokedKeyColumns = `account, masked, name, kind, id, org,
  (select v.external_id from vaults v where v.id = vault) as "externalId"`

export const unexpiredCondition = '(expires_at is null or expires_at > now())'

/** Records `key.revoked` for each. */
export const recordRevokedKeys = (
  tx: Pick<Transaction, 'query'>,
  keys: readonly RevokedKey[],
  actor: string,
): Promise<void> =>
  recordAccountEvents(
    tx,
    keys.map(({ account, masked }) => ({ account, actor, action: 'key.revoked', subject: masked })),
  )

/** The webhook events `key.revoked` of keys that stop working with the transaction. */
export const toKeyRevokedEvents = (keys: readonly RevokedKey[]) =>
  keys.map(({ account, masked, name, kind, id, org, externalId }) => ({
    account,
    event: 'key.revoked' as const,
    data: { key: masked, name, kind, key_id: id, org_id: org, external_id: externalId },
  }))
