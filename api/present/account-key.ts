import type { MemoryKey } from '#api/contract/types.ts'
import type { AccountKey } from '#shared/access/account-keys.postgres.ts'

type NewKeyFields = { key: string; name: string; createdAt: Date }

/** A key that was just made, whole. */
export const presentMintedKey = (
  { key, name, createdAt }: NewKeyFields,
  expiresAt: Date | null,
) => ({
  key,
  name,
  created_at: createdAt.toISOString(),
  ...(expiresAt && { expires_at: expiresAt.toISOString() }),
})

/**
 * A key in a listing.
 *
 * @param requesterHash the hash of the credential that asks
 */
export const presentAccountKey = (
  key: AccountKey,
  requesterHash: Buffer | undefined,
): MemoryKey => ({
  id: key.id,
  masked_key: key.masked,
  name: key.name,
  active: key.active,
  current: requesterHash !== undefined && key.hash.equals(requesterHash),
  created_at: key.createdAt.toISOString(),
  expires_at: toIsoOrNull(key.expiresAt),
  revoked_at: toIsoOrNull(key.revokedAt),
  rotated_at: toIsoOrNull(key.rotatedAt),
  last_used_at: toIsoOrNull(key.lastUsedAt),
})

const toIsoOrNull = (date: Date | null): string | null => date?.toISOString() ?? null
