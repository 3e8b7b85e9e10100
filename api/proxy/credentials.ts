import type { Context } from 'koa'
import {
  authenticateCaller,
  namesUser,
  parseBearer,
  readMemoryKey,
  toPresentedKey,
  type MemoryKeyBackend,
} from '#api/edge/memory-key-auth.ts'
import { callerOf, type Caller, type PresentedKey } from '#shared/access/caller.ts'
import { containsKey, looksLikeKey, type KeyMode } from '#shared/access/key.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'
import { withTimeout } from '#shared/core/with-timeout.ts'
import { requireKeyForm } from '#shared/models/resolve-model.ts'

/** The caller of a model call. */
export type ProxyCaller = {
  /** As the key was within the last second: enough for a call without memory. */
  caller: Caller
  /** Postgres is out of reach, and the key was admitted by a look-up of the last minute. */
  isUnverified: boolean
  /** As the key and its vault are now: for a call with memory. @throws as `authenticateProxyCaller` */
  verify(): Promise<Caller>
}

/**
 * Authenticates the caller of a model call. Google's clients send their only key as `x-goog-api-key`: a Memory Key is
 * accepted there as in `X-Memory-Key`. In the query it is not accepted: logs would hold it.
 *
 * A key that was found within the last second is not looked up until `verify`. Claims of an Idempotency-Key need
 * Postgres anyway.
 *
 * @throws Refusal as `authenticateCaller`; `unauthenticated` for two different Memory Keys.
 */
export async function authenticateProxyCaller(
  ctx: Context,
  backend: MemoryKeyBackend & Pick<Backend, 'verifiedKeys'>,
): Promise<ProxyCaller> {
  const memoryKey = memoryKeyOf(ctx)
  const key = toPresentedKey(backend.config, readMemoryKey(ctx, memoryKey))
  const { keyHash } = key
  const presented: PresentedKey & { memoryKey: string } = { ...key, memoryKey }
  const mayBeFresh = !ctx.headers['idempotency-key'] && !namesUser(ctx)
  const fresh = mayBeFresh ? backend.verifiedKeys.findFresh(keyHash) : undefined
  // A balance may be used up by now.
  if (!fresh || fresh.hasExpired || fresh.balance !== null) {
    const found = await lookUpCaller(ctx, backend, presented)
    return { ...found, verify: async () => found.caller }
  }
  backend.rateLimiter.rejectIfLimited(ctx, keyHash)
  const caller = callerOf(fresh, key)
  await backend.rateLimiter.consumeCallerQuota(ctx, caller)
  const verify = async (): Promise<Caller> => (await lookUpCaller(ctx, backend, presented)).caller
  return { caller, isUnverified: false, verify }
}

/**
 * While Postgres is out of reach, a call without memory that brings its provider key goes on with the look-up of its
 * key of the last minute, if there was one.
 */
async function lookUpCaller(
  ctx: Context,
  backend: MemoryKeyBackend & Pick<Backend, 'verifiedKeys'>,
  { memoryKey, ...key }: PresentedKey & { memoryKey: string },
): Promise<Omit<ProxyCaller, 'verify'>> {
  const mayGoOn = !namesUser(ctx) && needsNoStore(ctx, key.mode)
  const row = mayGoOn ? backend.verifiedKeys.find(key.keyHash) : undefined
  const { recallTimeoutMs } = backend.config
  // After this time expired memories are still being removed, and the call continues without memory.
  const options = { memoryKey, purgeTimeoutMs: recallTimeoutMs }
  const looking = authenticateCaller(ctx, backend, options)
  if (!row) return { caller: await looking, isUnverified: false }
  try {
    const caller = await withTimeout(looking, recallTimeoutMs, () => {
      throw new Refusal('unavailable', `The key was not looked up within ${recallTimeoutMs} ms`)
    })
    return { caller, isUnverified: false }
  } catch (error) {
    if (!(error instanceof Refusal) || error.reason !== 'unavailable') throw error
    const caller = callerOf({ ...row, hasExpired: false }, key)
    await backend.rateLimiter.consumeCallerQuota(ctx, caller)
    return { caller, isUnverified: true }
  }
}

/** The parts of a request that may hold keys. */
type KeySource = Pick<Context, 'headers' | 'query' | 'querystring'>

const headerOf = ({ headers }: KeySource, name: string): string => {
  const value = headers[name]
  return typeof value === 'string' ? value.trim() : ''
}

/** Whether a call needs nothing of Postgres but its key: memory is off and it brings its provider key. */
function needsNoStore(request: KeySource, keyMode: KeyMode): boolean {
  const { memory, mode } = request.query
  const inHeader = headerOf(request, 'x-memory-mode').toLowerCase()
  const isOff = [keyMode, inHeader, memory, mode].includes('off')
  return isOff && providerKeyFromRequest(request) !== undefined
}

/** The key of `X-Memory-Key`, or of `x-goog-api-key` where that one permits less or is alone. */
function memoryKeyOf(request: KeySource): string {
  const memoryKey = headerOf(request, 'x-memory-key')
  const googleKey = headerOf(request, 'x-goog-api-key')
  if (!looksLikeKey(googleKey)) return memoryKey
  if (memoryKey === '' || googleKey.startsWith(`${memoryKey}:`)) return googleKey
  if (memoryKey === googleKey || memoryKey.startsWith(`${googleKey}:`)) return memoryKey
  throw new Refusal('unauthenticated', 'Two different Memory Keys in one request')
}

/**
 * The provider key of a request: `X-Provider-Key`, else the first of `Authorization`, `x-api-key`, `x-goog-api-key`
 * and the query's `key` that holds no Memory Key.
 *
 * @throws Refusal `unauthenticated` when `X-Provider-Key` holds a Memory Key or no valid key.
 */
export function providerKeyFromRequest(request: KeySource): string | undefined {
  const explicitKey = headerOf(request, 'x-provider-key')
  if (containsKey(explicitKey)) throw refusal('unauthenticated', 'providerKeyIsMemoryKey')
  // Most requests have none: parsing it costs as much as all else here.
  const { key } = request.querystring === '' ? {} : request.query
  const providerKey = [
    explicitKey,
    parseBearer(request.headers.authorization ?? '') ?? '',
    headerOf(request, 'x-api-key'),
    headerOf(request, 'x-goog-api-key'),
    typeof key === 'string' ? key.trim() : '',
  ].find(value => value !== '' && !containsKey(value))
  if (providerKey === undefined || /^[\x21-\x7E]{1,1024}$/.test(providerKey)) return providerKey
  throw refusal('unauthenticated', 'badProviderKey')
}

/**
 * The provider key of a call: the request's, else the account's own for this provider; never the operator's. Those
 * that the operator runs need none.
 *
 * @throws Refusal `unauthenticated` naming the provider when there is none; `invalid` for a key that is plainly another
 *   provider's.
 */
export async function resolveProviderKey(
  request: KeySource,
  backend: Pick<Backend, 'providerKeys' | 'config'>,
  { account }: Caller,
  provider: string,
): Promise<string | undefined> {
  const key =
    providerKeyFromRequest(request) ?? (await backend.providerKeys.open(account, provider))
  if (key !== undefined) requireKeyForm(provider, key)
  if (key !== undefined || backend.config.providers.get(provider)?.selfHosted) return key
  throw refusal('unauthenticated', 'noProviderKey', { provider })
}
