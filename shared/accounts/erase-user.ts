import { listUsers, revokeVaultKeys, type ListedUser } from '#shared/access/memory-keys.postgres.ts'
import { announceRevokedKeys } from '#shared/access/revoked-key.ts'
import { emailProof, signReceipt } from '#shared/accounts/erasure-receipt.ts'
import type { Config } from '#shared/core/config.ts'
import { refusal } from '#shared/core/refusal.ts'
import { recordAccountEvent } from '#shared/events/account-events.postgres.ts'
import { lockVaults } from '#shared/operations/vault-locks.postgres.ts'
import type { Query, Transaction } from '#shared/storage/postgres/connect.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import type { Stores } from '#shared/storage/stores.ts'
import { retireVaults } from '#shared/vault/delete/retire-vaults.postgres.ts'
import { countVault } from '#shared/vault/read/lists/counts.mongo.ts'

export type UserErasure = {
  account: string
  /** As the account's events name it. */
  actor: string
  keyHash: Buffer
  /** The product's id of the user. */
  externalId: string
  /** The UUIDv7 of the erasure, and of its receipt. */
  id: string
  now: number
}

/** How much of a user was there. */
export type ErasedUser = { memories: number; keys: number }

/** @throws Refusal `missing` when the account has no such user. */
export async function findErasedUser(
  { postgres, mongo }: Stores,
  { account, externalId, now }: UserErasure,
): Promise<{ vault: string; memories: number }> {
  const user = await findUser(postgres.query, account, externalId)
  if (!user) throw refusal('missing', 'noSuchUserOfAccount')
  const { memories } = await countVault(mongo, user, now)
  return { vault: user.vault, memories }
}

/**
 * Erases a user of an account: after the commit all keys of the vault are refused and nothing of it can be seen; a job
 * removes it from both stores, and the product's id is free again. `vaultIndexes.forget` afterwards.
 *
 * @param found what `findErasedUser` found
 * @returns what was erased, and its receipt as a compact JSON Web Signature.
 * @throws Refusal `missing` when the user was erased meanwhile.
 */
export async function eraseUser(
  tx: Transaction,
  { queue, config }: { queue: Queue; config: Config },
  { account, actor, keyHash, externalId, id, now }: UserErasure,
  { vault, memories }: { vault: string; memories: number },
): Promise<{ erased: ErasedUser; receipt: string }> {
  await lockVaults(tx, [vault])
  if ((await findUser(tx.query, account, externalId))?.vault !== vault)
    throw refusal('missing', 'noSuchUserOfAccount')
  await retireVaults(tx, { queue }, { operation: id, account, keyHash, vaults: [vault] })
  const revoked = await revokeVaultKeys(tx, vault)
  await announceRevokedKeys(tx, queue, revoked, actor)
  const subject = `receipt ${id}`
  await recordAccountEvent(tx, { account, actor, action: 'vault.cleared', subject })
  const erased = { memories, keys: revoked.length }
  const requested = { id, account, user_proof: emailProof(id, externalId) }
  const erasedAt = new Date(now).toISOString()
  return {
    erased,
    receipt: signReceipt(config.masterKeys, { ...requested, erased_at: erasedAt, erased }),
  }
}

const findUser = async (
  query: Query,
  account: string,
  externalId: string,
): Promise<ListedUser | undefined> =>
  (
    await listUsers(query, account, { search: undefined, after: undefined, limit: 1, externalId })
  )[0]
