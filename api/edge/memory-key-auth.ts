import type { Context } from 'koa'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { authenticateMemoryKey, extractMemoryKey, type Caller } from '#shared/access/caller.ts'
import { hashKey, type KeyMode } from '#shared/access/key.ts'
import { Refusal } from '#shared/core/errors.ts'

export type MemoryKeyBackend = Pick<ApiBackend, 'findKey' | 'config' | 'expiry' | 'rateLimiter'>

type MemoryKeyOptions = {
  /** In place of the header `X-Memory-Key`. */
  memoryKey?: string
  /** Longest the request waits for the removal of expired memories; 5 s, when missing. */
  purgeTimeoutMs?: number
}

const defaultPurgeTimeoutMs = 5_000

/**
 * The caller of a request, by the Memory Key in `X-Memory-Key`, `Authorization: Bearer` or `x-api-key`.
 * Applies the limits of the key, then removes what has expired in its vault; when that takes too long,
 * `keyRow.hasExpired` stays true.
 *
 * @throws Refusal `unauthenticated`, or `limited` when the key makes too many requests.
 */
export async function authenticateCaller(
  ctx: Context,
  { findKey, config, expiry, rateLimiter }: MemoryKeyBackend,
  { memoryKey, purgeTimeoutMs = defaultPurgeTimeoutMs }: MemoryKeyOptions = {},
): Promise<Caller> {
  const key = readMemoryKey(ctx, memoryKey)
  rateLimiter.rejectIfLimited(ctx, hashKey(config.keyPepper, key.key))
  const caller = await authenticateMemoryKey(findKey, config.keyPepper, key)
  await rateLimiter.consumeKeyQuota(ctx, caller.keyHash, caller.account)
  const { hasExpired } = caller.keyRow
  if (!hasExpired || !(await expiry.purgeExpired(caller.scope.vault, purgeTimeoutMs))) return caller
  const currentCaller = await authenticateMemoryKey(findKey, config.keyPepper, key)
  // Memories that have expired since this request began are left to the next one.
  return { ...currentCaller, keyRow: { ...currentCaller.keyRow, hasExpired: false } }
}

/**
 * The Memory Key of a request and what its suffix permits; the key is not looked up.
 *
 * @throws Refusal `unauthenticated` when there is none, or more than one.
 */
export function readMemoryKey(
  ctx: Context,
  memoryKey = ctx.get('x-memory-key').trim(),
): { key: string; mode: KeyMode } {
  if (hasSeveralAuthorizations(ctx))
    throw new Refusal('unauthenticated', 'Authorization is given more than once')
  return extractMemoryKey({
    memoryKey: memoryKey || undefined,
    authorization: parseBearer(ctx.get('authorization')),
    apiKey: ctx.get('x-api-key').trim() || undefined,
  })
}

/** Node keeps the first of several `Authorization` headers and drops the others. */
export const hasSeveralAuthorizations = ({ req }: Context): boolean =>
  (req.headersDistinct.authorization?.length ?? 0) > 1

/** The token of `Bearer …`; the scheme's case does not matter. */
export const parseBearer = (authorization: string): string | undefined =>
  /^bearer +(\S+)\s*$/i.exec(authorization)?.[1]
