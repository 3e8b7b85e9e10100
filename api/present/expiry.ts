import type { Memory } from '#shared/domain/memory.ts'

/** When a memory will be gone, where it will. */
export const presentExpiry = ({ expiresAt }: Pick<Memory, 'expiresAt'>) =>
  expiresAt === undefined ? {} : { expires_at: new Date(expiresAt).toISOString() }
