import type { MemoryKey } from '#api/contract/generated/types.ts'
import type { AccountKey } from '#shared/access/memory-keys.postgres.ts'

type NewKeyFields = { id: string; key: string; name: string; createdAt: Date }

/**
 * A key that was just made, whole.
 *
 * @param externalId of the user whose vault it opens
 */
export const presentMintedKey = (
  { id, key, name, createdAt }: NewKeyFields,
  expiresAt: Date | null,
  externalId?: string | null,
) => ({
  id,
  key,
  name,
  ...(typeof externalId === 'string' && { external_id: externalId }),
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
  external_id: key.externalId,
  active: key.active,
  current: requesterHash !== undefined && key.hash.equals(requesterHash),
  created_at: key.createdAt.toISOString(),
  expires_at: toIsoOrNull(key.expiresAt),
  revoked_at: toIsoOrNull(key.revokedAt),
  rotated_at: toIsoOrNull(key.rotatedAt),
  last_used_at: toIsoOrNull(key.lastUsedAt),
})

const toIsoOrNull = (date: Date | null): string | null => date?.toISOString() ?? null
