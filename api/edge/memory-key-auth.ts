import type { Context } from 'koa'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { openUser, readUserHeader, type UserBackend } from '#api/edge/memory-user.ts'
import {
  authenticateMemoryKey,
  extractMemoryKey,
  limitSubjectOf,
  type Caller,
} from '#shared/access/caller.ts'
import { hashKey, looksLikeKey, type KeyMode } from '#shared/access/key.ts'
import { Refusal } from '#shared/core/errors.ts'

export type MemoryKeyBackend = Pick<ApiBackend, 'findKey' | 'expiry'> & UserBackend

type MemoryKeyOptions = {
  /** In place of the header `X-Memory-Key`. */
  memoryKey?: string
  /** Longest the request waits for the removal of expired memories; 5 s, when missing. */
  purgeTimeoutMs?: number
}

const defaultPurgeTimeoutMs = 5_000

/**
 * The caller of a request, by the Memory Key in `X-Memory-Key`, `Authorization: Bearer` or `x-api-key`; with
 * `X-Memory-User` that of the user which an owner key names.
 * Applies the limits of the key, then removes what has expired in its vault; when that takes too long,
 * `keyRow.hasExpired` stays true.
 *
 * @throws Refusal `unauthenticated`; `limited` when the key makes too many requests; and as `openUser`.
 */
export async function authenticateCaller(
  ctx: Context,
  backend: MemoryKeyBackend,
  { memoryKey, purgeTimeoutMs = defaultPurgeTimeoutMs }: MemoryKeyOptions = {},
): Promise<Caller> {
  const { findKey, config, rateLimiter } = backend
  const key = readMemoryKey(ctx, memoryKey)
  const user = readUserHeader(ctx)
  const authenticateKey = () => authenticateMemoryKey(findKey, config.keyPepper, key)
  if (user !== undefined) {
    const open = async () => openUser(ctx, backend, await authenticateKey(), user)
    return afterPurge(backend, open, purgeTimeoutMs)
  }
  rateLimiter.rejectIfLimited(ctx, hashKey(config.keyPepper, key.key))
  const caller = await authenticateKey()
  await rateLimiter.consumeKeyQuota(ctx, limitSubjectOf(caller), caller.account)
  return afterPurge(backend, authenticateKey, purgeTimeoutMs, caller)
}

/**
 * A caller from whose vault the expired memories are removed.
 *
 * @param authenticate finds the caller, as it is now
 * @param known the caller, where it was found already
 */
export async function afterPurge(
  { expiry }: Pick<MemoryKeyBackend, 'expiry'>,
  authenticate: () => Promise<Caller>,
  purgeTimeoutMs = defaultPurgeTimeoutMs,
  known?: Caller,
): Promise<Caller> {
  const caller = known ?? (await authenticate())
  const { hasExpired } = caller.keyRow
  if (!hasExpired || !(await expiry.purgeExpired(caller.scope.vault, purgeTimeoutMs))) return caller
  const currentCaller = await authenticate()
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
  requireOneAuthorization(ctx)
  const apiKey = ctx.get('x-api-key').trim() || undefined
  if (!memoryKey && !apiKey && looksLikeKey(ctx.get('authorization').trim())) {
    throw new Refusal(
      'unauthenticated',
      'The Memory Key in Authorization has no scheme',
      'Send it as "Authorization: Bearer mk_…", with the word Bearer before it',
    )
  }
  return extractMemoryKey({
    memoryKey: memoryKey || undefined,
    authorization: parseBearer(ctx.get('authorization')),
    apiKey,
  })
}

/**
 * Node keeps the first of several `Authorization` headers and drops the others.
 *
 * @throws Refusal `unauthenticated` when there are several.
 */
export function requireOneAuthorization({ req }: Context): void {
  const { rawHeaders } = req
  const isAuthorization = (name: string, index: number): boolean =>
    index % 2 === 0 && name.length === 13 && name.toLowerCase() === 'authorization'
  if (rawHeaders.findIndex(isAuthorization) !== rawHeaders.findLastIndex(isAuthorization))
    throw new Refusal('unauthenticated', 'Authorization is given more than once')
}

/** The token of `Bearer …`; the scheme's case does not matter. */
export const parseBearer = (authorization: string): string | undefined =>
  /^bearer +(\S+)\s*$/i.exec(authorization)?.[1]
