import type { IncomingMessage } from 'node:http'
import type { Context } from 'koa'
import {
  afterPurge,
  authenticateCaller,
  parseBearer,
  readMemoryKey,
  namesUser,
  openUser,
  readUserHeader,
  type MemoryKeyBackend,
} from '#api/edge/memory-key-auth.ts'
import { setMemoryHeaders } from '#api/proxy/response-headers.ts'
import { parseExternalId } from '#shared/access/user-keys.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { withTimeout } from '#shared/core/with-timeout.ts'
import { callerOf, limitSubjectOf, type Caller } from '#shared/access/caller.ts'
import { containsKey, hashKey, looksLikeKey, type KeyMode } from '#shared/access/key.ts'
import { requireKeyForm } from '#shared/models/resolve-model.ts'

/** The caller of a model call. */
export type ProxyCaller = {
  /** As the key was within the last second: enough for a call without memory. */
  caller: Caller
  /** As the key and its vault are now: for a call with memory. @throws as `authenticateProxyCaller` */
  verify(): Promise<Caller>
}

/**
 * Authenticates the caller of a model call. Google's clients send their only key as `x-goog-api-key`: a
 * Memory Key is accepted there as in `X-Memory-Key`. In the query it is not accepted: logs would hold it.
 *
 * A key that was found within the last second is not looked up until `verify`. Claims of an Idempotency-Key
 * need Postgres anyway.
 *
 * @throws Refusal as `authenticateCaller`; `unauthenticated` for two different Memory Keys.
 */
export async function authenticateProxyCaller(
  ctx: Context,
  backend: MemoryKeyBackend & Pick<Backend, 'verifiedKeys'>,
): Promise<ProxyCaller> {
  const memoryKey = memoryKeyOfHeaders(ctx)
  const key = readMemoryKey(ctx, memoryKey)
  const keyHash = hashKey(backend.config.keyPepper, key.key)
  const presented: PresentedKey = { ...key, keyHash, memoryKey }
  const fresh =
    ctx.get('idempotency-key') === '' && !namesUser(ctx)
      ? backend.verifiedKeys.findFresh(keyHash)
      : undefined
  // A balance may be used up by now.
  if (!fresh || fresh.hasExpired || fresh.balance !== null) {
    const caller = await lookUpCaller(ctx, backend, presented)
    return { caller, verify: async () => caller }
  }
  backend.rateLimiter.rejectIfLimited(ctx, keyHash)
  const caller = callerOf(fresh, keyHash, key)
  await backend.rateLimiter.consumeKeyQuota(ctx, limitSubjectOf(caller), caller.account)
  return { caller, verify: () => lookUpCaller(ctx, backend, presented) }
}

type PresentedKey = { key: string; mode: KeyMode; keyHash: Buffer; memoryKey: string }

/**
 * While Postgres is out of reach, a call without memory that brings its provider key goes on with the look-up
 * of its key of the last minute, if there was one: see `isKeyUnverified`.
 */
async function lookUpCaller(
  ctx: Context,
  backend: MemoryKeyBackend & Pick<Backend, 'verifiedKeys'>,
  { keyHash, memoryKey, ...key }: PresentedKey,
): Promise<Caller> {
  const row =
    !namesUser(ctx) && needsNoStore(ctx, key.mode) ? backend.verifiedKeys.find(keyHash) : undefined
  const { recallTimeoutMs } = backend.config
  // After this expired memories are still being removed, and the call continues without memory.
  const purgeTimeoutMs = recallTimeoutMs
  const authenticated = authenticateCaller(ctx, backend, { memoryKey, purgeTimeoutMs })
  if (!row) return authenticated
  try {
    return await withTimeout(authenticated, recallTimeoutMs, () => {
      throw new Refusal('unavailable', `The key was not looked up within ${recallTimeoutMs} ms`)
    })
  } catch (error) {
    if (!(error instanceof Refusal) || error.reason !== 'unavailable') throw error
    unverifiedRequests.add(ctx.req)
    const caller = callerOf({ ...row, hasExpired: false }, keyHash, key)
    await backend.rateLimiter.consumeKeyQuota(ctx, limitSubjectOf(caller), caller.account)
    return caller
  }
}

/**
 * The caller of a call whose body names a user as `X-Memory-User` does. The limits of the owner key have
 * counted the call by then.
 *
 * @throws Refusal `invalid` when header and body differ, and as `openUser`.
 */
export async function authenticateBodyUser(
  ctx: Context,
  backend: MemoryKeyBackend,
  caller: Caller,
  memoryUser: string | undefined,
): Promise<Caller> {
  if (memoryUser === undefined) return caller
  const user = parseExternalId(memoryUser, 'memory_user')
  const inHeader = readUserHeader(ctx)
  if (inHeader === user) return caller
  if (inHeader !== undefined)
    throw new Refusal('invalid', 'X-Memory-User and memory_user name different users')
  const open = () => openUser(ctx, backend, caller, user)
  const userCaller = await afterPurge(backend, open, backend.config.recallTimeoutMs)
  setMemoryHeaders(ctx, userCaller)
  return userCaller
}

/** Requests that were admitted by a look-up of the last minute, while Postgres was out of reach. */
const unverifiedRequests = new WeakSet<IncomingMessage>()

export const isKeyUnverified = ({ req }: Context): boolean => unverifiedRequests.has(req)

/** Whether a call needs nothing of Postgres but its key: memory is off and it brings its provider key. */
function needsNoStore(ctx: Context, keyMode: KeyMode): boolean {
  const { memory, mode } = ctx.query
  const isOff =
    keyMode === 'off' ||
    ctx.get('x-memory-mode').trim().toLowerCase() === 'off' ||
    memory === 'off' ||
    mode === 'off'
  return isOff && providerKeyFromRequest(ctx) !== undefined
}

/** The key of `X-Memory-Key`, or of `x-goog-api-key` where that one permits less or is alone. */
function memoryKeyOfHeaders(ctx: Context): string {
  const memoryKey = ctx.get('x-memory-key').trim()
  const googleKey = ctx.get('x-goog-api-key').trim()
  if (!looksLikeKey(googleKey)) return memoryKey
  if (memoryKey === '' || googleKey.startsWith(`${memoryKey}:`)) return googleKey
  if (memoryKey === googleKey || memoryKey.startsWith(`${googleKey}:`)) return memoryKey
  throw new Refusal('unauthenticated', 'Two different Memory Keys in one request')
}

/**
 * The provider key of a request: `X-Provider-Key`, else the first of `Authorization`, `x-api-key`,
 * `x-goog-api-key` and the query's `key` that holds no Memory Key.
 *
 * @throws Refusal `unauthenticated` when `X-Provider-Key` holds a Memory Key or no valid key.
 */
export function providerKeyFromRequest(ctx: Context): string | undefined {
  const explicitKey = ctx.get('x-provider-key').trim()
  if (containsKey(explicitKey)) {
    throw new Refusal(
      'unauthenticated',
      'X-Provider-Key holds a Memory Key',
      'It takes the key of the model provider; the Memory Key goes into Authorization or X-Memory-Key',
    )
  }
  const { key } = ctx.query
  const providerKey = [
    explicitKey,
    parseBearer(ctx.get('authorization')) ?? '',
    ctx.get('x-api-key').trim(),
    ctx.get('x-goog-api-key').trim(),
    typeof key === 'string' ? key.trim() : '',
  ].find(value => value !== '' && !containsKey(value))
  if (providerKey === undefined || /^[\x21-\x7E]{1,1024}$/.test(providerKey)) return providerKey
  throw new Refusal(
    'unauthenticated',
    'The provider key is not one: it must be 1 to 1024 printable ASCII characters',
  )
}

/**
 * The provider key of a call: the request's, else the account's own for this provider; never the
 * operator's. Those that the operator runs need none.
 *
 * @throws Refusal `unauthenticated` naming the provider when there is none; `invalid` for a key that is
 *   plainly another provider's.
 */
export async function resolveProviderKey(
  ctx: Context,
  backend: Pick<Backend, 'providerKeys' | 'config'>,
  { account }: Caller,
  provider: string,
): Promise<string | undefined> {
  const key = providerKeyFromRequest(ctx) ?? (await backend.providerKeys.open(account, provider))
  if (key !== undefined) requireKeyForm(provider, key)
  if (key !== undefined || backend.config.providers.get(provider)?.selfHosted) return key
  throw new Refusal(
    'unauthenticated',
    `No provider key for ${provider}`,
    `Send one as X-Provider-Key, or as "Authorization: Bearer" beside X-Memory-Key, or store it with PUT /v1/account/provider-keys/${provider}`,
  )
}
