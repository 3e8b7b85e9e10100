import type { MemoryKey } from '#api/contract/types.ts'
import type { AccountKey } from '#shared/access/account-keys.postgres.ts'

type Minted = { key: string; name: string; createdAt: Date }

/** A key that was just made, whole. */
export const presentMinted = ({ key, name, createdAt }: Minted, expiresAt: Date | null) => ({
  key,
  name,
  created_at: createdAt.toISOString(),
  ...(expiresAt && { expires_at: expiresAt.toISOString() }),
})

/**
 * A key in a listing.
 *
 * @param asking the hash of the credential that asks
 */
export const presentAccountKey = (key: AccountKey, asking: Buffer | undefined): MemoryKey => ({
  id: key.id,
  masked_key: key.masked,
  name: key.name,
  active: key.active,
  current: asking !== undefined && key.hash.equals(asking),
  created_at: key.createdAt.toISOString(),
  expires_at: isoOf(key.expiresAt),
  revoked_at: isoOf(key.revokedAt),
  rotated_at: isoOf(key.rotatedAt),
  last_used_at: isoOf(key.lastUsedAt),
})

const isoOf = (date: Date | null): string | null => date?.toISOString() ?? null
