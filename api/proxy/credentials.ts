import type { Context } from 'koa'
import {
  authenticateCaller,
  parseBearer,
  type MemoryKeyBackend,
} from '#api/edge/memory-key-auth.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { Caller } from '#shared/access/caller.ts'
import { containsKey, looksLikeKey } from '#shared/access/key.ts'
import { openProviderKey } from '#shared/access/provider-key.ts'
import type { ProviderName } from '#shared/core/provider-registry.ts'

/** After this a model call continues without memory: expired memories are still being removed. */
const purgeTimeoutMs = 1_000

/**
 * Authenticates the caller of a model call. Google's clients send their only key as `x-goog-api-key`: a
 * Memory Key is accepted there as in `X-Memory-Key`. In the query it is not accepted: logs would hold it.
 *
 * @throws Refusal as `authenticateCaller`; `unauthenticated` for two different Memory Keys.
 */
export async function authenticateProxyCaller(
  ctx: Context,
  backend: MemoryKeyBackend,
): Promise<Caller> {
  const memoryKey = memoryKeyOfHeaders(ctx)
  return authenticateCaller(ctx, backend, { memoryKey, purgeTimeoutMs })
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
function providerKeyFromRequest(ctx: Context): string | undefined {
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
 * operator's. Ollama needs none.
 *
 * @throws Refusal `unauthenticated` naming the provider when there is none.
 */
export async function resolveProviderKey(
  ctx: Context,
  backend: Pick<Backend, 'postgres' | 'seal'>,
  { account }: Caller,
  provider: ProviderName,
): Promise<string | undefined> {
  const key = providerKeyFromRequest(ctx) ?? (await openProviderKey(backend, account, provider))
  if (key !== undefined || provider === 'ollama') return key
  throw new Refusal(
    'unauthenticated',
    `No provider key for ${provider}`,
    `Send one as X-Provider-Key, or as "Authorization: Bearer" beside X-Memory-Key, or store it with PUT /v1/account/provider-keys/${provider}`,
  )
}
