import { isDeepStrictEqual } from 'node:util'
import { mintKey } from '#shared/access/key.ts'
import {
  expireRotatedKey,
  findAccountKey,
  findReplaceableKey,
  revokeVaultKeys,
  hasActiveKey,
  revokeKey,
  type ReplaceableKey,
} from '#shared/access/memory-keys.postgres.ts'
import {
  updateKeyBudget,
  type BudgetChange,
  type StoredBudget,
} from '#shared/access/key-budgets.postgres.ts'
import { storeKey, type MintedKey } from '#shared/access/mint.ts'
import {
  announceRevokedKeys,
  emitKeyRevoked,
  recordRevokedKeys,
} from '#shared/access/revoked-key.ts'
import { mintSealedKey } from '#shared/access/user-keys.ts'
import type { Config } from '#shared/core/config.ts'
import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { noSuchKey } from '#shared/core/refusals.ts'
import { isUuid, mintId } from '#shared/core/ids.ts'
import type { Seal } from '#shared/core/seal.ts'
import { lockVaults } from '#shared/operations/vault-locks.postgres.ts'
import type { Transaction, Postgres } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import { retireVaults } from '#shared/vault/delete/retire-vaults.postgres.ts'
import { recordAccountEvent } from '#shared/events/account-events.postgres.ts'
import { findOperationStatus } from '#shared/vault/base/erasures.postgres.ts'
import type { VaultIndexes } from '#shared/search/index/vault-indexes.ts'

/**
 * Creates a further key for a vault, with fewer rights than the key that makes it. The raw key is only in the result.
 *
 * @throws Refusal `conflict` when the vault is being erased.
 */
export async function mintClientKey(
  tx: Transaction,
  { config }: Pick<KeyBackend, 'config'>,
  client: {
    account: string
    /** As the account's events name who makes it. */
    actor: string
    /** The vault of the key that makes it. */
    vault: string
    name: string
    rights: 'memory' | 'users'
    expiresAt: Date | null
    /** Hash of the key whose rate limits it shares; null: limits of its own. */
    limitedAs: Buffer | null
  },
): Promise<MintedKey> {
  const { vault, name } = client
  // An erasure takes the same lock, and revokes every key that the vault has by then.
  await lockVaults(tx, [vault])
  if (!(await hasActiveKey(tx, vault)))
    throw new Refusal('conflict', 'The vault of this key is being erased')
  const minted = {
    id: mintId(),
    key: mintKey('vault'),
    kind: 'vault',
    action: 'key.minted',
  } as const
  const createdAt = await storeKey(tx, config.keyPepper, { ...client, ...minted })
  const { id, key } = minted
  return { id, key, name, vault, createdAt }
}

type KeyBackend = { config: Config; queue: Queue; seal: Seal }

/** The key to make. */
type Replacement = {
  /** As the account's events name who makes it. */
  actor: string
  /** That of the old key, when undefined. */
  name: string | undefined
  expiresAt: Date | null
}

/**
 * Creates a new key for the vault of an old one, which stops working now or after `graceSeconds`. The
 * memories of the vault stay.
 *
 * @throws Refusal `forbidden` when the old key is revoked, expired or rotated already.
 */
export async function rotateMemoryKey(
  tx: Transaction,
  backend: KeyBackend,
  rotation: Replacement & {
    /** The old key's. */
    keyHash: Buffer
    vault: string
    graceSeconds: number
  },
) {
  const { keyHash, vault, actor, name, expiresAt, graceSeconds } = rotation
  // Revoking every key of the vault takes the same lock, so it does not miss the key that is made here.
  await lockVaults(tx, [vault])
  const previous = await expireRotatedKey(tx, keyHash, graceSeconds)
  if (!previous) throw refusal('forbidden', 'keyRotated')
  if (previous.expiresSooner) await recordRevokedKeys(tx, [previous], actor)
  // Webhooks get no event of a key that works for `graceSeconds` more, now or when it expires.
  if (previous.hasExpired) await emitKeyRevoked(tx, backend.queue, [previous])
  const { account, limitedAs, externalId } = previous
  const row = { account, vault, limitedAs, externalId, name: name ?? previous.name, expiresAt }
  const rotated = await storeReplacement(tx, backend, { ...row, actor, action: 'key.rotated' })
  return { ...rotated, previousExpiresAt: previous.expiresAt }
}

/**
 * Creates another key for the vault of a lost one, and revokes every key that the vault had. The memories of
 * the vault stay.
 *
 * @throws Refusal `missing` when the account has no such key; `conflict` for a key that acts for the account,
 *   and when the vault was erased.
 */
export async function remintKey(
  tx: Transaction,
  backend: KeyBackend,
  { account, actor, keyId, name, expiresAt }: Replacement & { account: string; keyId: string },
) {
  const { vault, limitedAs, externalId, ...lost } = await lockReplaceableKey(tx, account, keyId)
  const revoked = await revokeVaultKeys(tx, vault)
  await announceRevokedKeys(tx, backend.queue, revoked, actor)
  const row = { account, vault, limitedAs, externalId, name: name ?? lost.name, expiresAt }
  const reminted = await storeReplacement(tx, backend, { ...row, actor, action: 'key.reminted' })
  return { ...reminted, externalId, revoked: revoked.length }
}

/** Stores a new key. The key of a user is sealed, so that the owner can read it again. */
async function storeReplacement(
  tx: Transaction,
  { config, seal }: KeyBackend,
  {
    externalId,
    ...row
  }: Replacement & { account: string; vault: string; name: string; limitedAs: Buffer } & {
    externalId: string | null
    action: 'key.rotated' | 'key.reminted'
  },
) {
  const { id, key, sealed } = mintSealedKey({ seal })
  const stored = {
    ...row,
    id,
    key,
    kind: 'vault',
    sealed: externalId === null ? null : sealed,
  } as const
  const createdAt = await storeKey(tx, config.keyPepper, stored)
  return { id, key, name: row.name, createdAt }
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
  if (!key) throw noSuchKey()
  if (key.rights !== 'all') throw refusal('conflict', 'keyForClient')
  if (key.isOwnerVault) throw refusal('conflict', 'keyForAccount')
  if (key.isErased) throw refusal('conflict', 'vaultErased')
  return key
}

/**
 * Sets the budget of a key; undefined leaves a value as it is.
 *
 * @throws Refusal `missing` when the account has no such key.
 */
export async function changeKeyBudget(
  tx: Transaction,
  { account, actor }: { account: string; actor: string },
  keyId: string,
  change: BudgetChange,
): Promise<void> {
  const changed = isUuid(keyId) ? await updateKeyBudget(tx, account, keyId, change) : undefined
  if (!changed) throw noSuchKey()
  const { masked: subject, before, after } = changed
  if (isDeepStrictEqual(before, after)) return
  const event = { account, actor, action: 'key.changed', subject } as const
  await recordAccountEvent(tx, { ...event, change: [toFields(before), toFields(after)] })
}

const toFields = ({ requests, tokens, micros }: StoredBudget) => ({
  daily_requests: requests,
  daily_tokens: tokens,
  ...(micros !== null && { monthly_dollars: micros / 1e6 }),
})

/**
 * Revokes a key of an account, with the clients' keys that a user's key made: it is refused from the next request on. Its vault stays, in bills and
 * exports too; with `erase` the vault is invisible when this resolves, and a job removes it from both
 * stores. A second run changes nothing.
 *
 * @throws Refusal `missing` when the account has no such key; `conflict` for the key that asks unless it was made
 *   for a client, and when the vault is to go and another key opens it.
 */
export async function revokeAccountKey(
  {
    postgres,
    queue,
    vaultIndexes,
  }: { postgres: Postgres; queue: Queue; vaultIndexes: VaultIndexes },
  requester: {
    account: string
    /** As the account's events name it. */
    actor: string
    keyHash: Buffer
    /** A key that was made for a client, and ends nothing but itself. */
    isClientKey?: boolean
  },
  revocation: {
    /** The key's. */
    id: string
    /** Erases the vault of the key too. */
    erase: boolean
    /** The UUIDv7 of the erasure. */
    operation: string
  },
): Promise<void> {
  const { account, actor, keyHash, isClientKey = false } = requester
  const { id, erase, operation } = revocation
  const key = isUuid(id) ? await findAccountKey(postgres.query, account, id) : undefined
  if (!key) throw noSuchKey()
  const { hash, vault, masked: subject } = key
  if (hash.equals(keyHash) && !isClientKey) throw refusal('conflict', 'keyEndsItself')
  await postgres.transaction(async tx => {
    const hasBegun = erase && (await findOperationStatus(tx.query, operation)) !== undefined
    // Vaults are locked before keys, in the order of `eraseAccount`.
    if (erase && !hasBegun) {
      await retireVaults(tx, { queue }, { operation, account, keyHash, vaults: [vault] })
      await recordAccountEvent(tx, { account, actor, action: 'vault.cleared', subject })
    }
    await announceRevokedKeys(tx, queue, await revokeKey(tx.query, account, hash), actor)
    if (erase && (await hasActiveKey(tx, vault))) throw refusal('conflict', 'vaultOpenedByOther')
  })
  if (erase) vaultIndexes.forget(vault)
}
