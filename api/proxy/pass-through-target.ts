import type { Context } from 'koa'
import { publicOrigin } from '#api/edge/request.ts'
import { providerKeyFromRequest, resolveProviderKey } from '#api/proxy/credentials.ts'
import type { ProviderRoute } from '#api/proxy/provider-routes.ts'
import {
  buildProviderTarget,
  type ProviderTarget,
  namedProvider,
  pickProvider,
} from '#api/proxy/provider-target.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import type { Caller } from '#shared/access/caller.ts'
import { containsKey } from '#shared/access/key.ts'
import { openProviderKeys } from '#shared/access/provider-key.ts'
import { Refusal } from '#shared/core/errors.ts'
import { providerOfKey, type ApiFormat } from '#shared/core/provider-registry.ts'
import type { UpstreamResponse } from '#shared/models/upstream.ts'
import { resolveModel, type ModelRef } from '#shared/models/resolve-model.ts'

/** Clients of Anthropic send its version, or at least one of its keys; those of others never do. */
export function formatOf(ctx: Context, { family }: Pick<ProviderRoute, 'family'>): ApiFormat {
  if (family !== 'shared') return family
  const isAnthropic =
    ctx.get('anthropic-version') !== '' ||
    providerOfKey(providerKeyFromRequest(ctx) ?? '') === 'anthropic'
  return isAnthropic ? 'anthropic' : 'openai'
}

type ModelChoice = {
  format: ApiFormat
  /** As the path has it: `%2F` may stand for a slash. */
  pathModel: string | undefined
  bodyModel: string | undefined
}

/**
 * The model of a request, which chooses its provider. Without one the request is the provider's as a
 * whole, and counts under the first part of its path.
 *
 * @throws Refusal `invalid` as `resolveModel` and `pickProvider`
 */
export async function choosePassthroughModel(
  ctx: Context,
  backend: ApiBackend,
  { account }: Caller,
  { format, pathModel, bodyModel }: ModelChoice,
): Promise<ModelRef> {
  const { providers } = backend.config
  const requested = pathModel?.replace(/%2F/gi, '/') ?? bodyModel
  if (requested === undefined) {
    const name = ctx.path.replace(/^\/(?:upload\/)?v1(?:beta)?\//, '').split('/')[0]!
    return { provider: pickProvider(ctx, format, providers), name }
  }
  // A model that is only looked up may be one that no list shows.
  const provider = ctx.method === 'GET' ? namedProvider(ctx, format, providers) : undefined
  if (provider !== undefined) return { provider, name: withoutPrefix(requested, provider) }
  return resolveModel(backend, requested, format, () => openProviderKeys(backend, account))
}

const withoutPrefix = (name: string, provider: string): string =>
  name.startsWith(`${provider}/`) ? name.slice(provider.length + 1) : name

/**
 * The address and the headers of a request at its provider.
 *
 * @throws Refusal `missing` for a Memory Key in the path; `unauthenticated` without a provider key
 */
export async function passthroughTarget(
  ctx: Context,
  backend: ApiBackend,
  caller: Caller,
  { format, pathModel, model }: Pick<ModelChoice, 'format' | 'pathModel'> & { model: ModelRef },
): Promise<ProviderTarget> {
  const whole =
    pathModel === undefined
      ? ctx.path
      : ctx.path.replace(`/models/${pathModel}`, () => `/models/${model.name}`)
  if (containsKey(decodeURI(whole))) {
    throw new Refusal('missing', 'No such path at the provider', 'A Memory Key goes into a header')
  }
  const isBelowBase = format === 'openai' || format === 'responses'
  const key = await resolveProviderKey(ctx, backend, caller, model.provider)
  const target = buildProviderTarget(ctx, backend.config, {
    model,
    format,
    path: isBelowBase ? whole.replace(/^\/v1/, '') : whole,
    ...(key !== undefined && { key }),
  })
  // Anthropic answers nothing without its version, which a client of OpenAI does not send.
  const version = format === 'anthropic' ? { 'anthropic-version': '2023-06-01' } : {}
  return { ...target, headers: { ...version, ...target.headers } }
}

/** Headers of Google with the address at which an upload goes on, or is controlled. */
const uploadAddresses = ['x-goog-upload-url', 'x-goog-upload-control-url']

/**
 * Google names the address at which an upload goes on. It becomes ours, whatever its host: clients send their
 * headers there, the Memory Key with them. One that no route of ours has is left out, and the client says so.
 */
export function rewriteUploadUrl(
  ctx: Context,
  { headers, ...response }: UpstreamResponse,
): UpstreamResponse {
  const given = uploadAddresses.filter(name => headers[name] !== undefined)
  if (given.length === 0) return { ...response, headers }
  const ours = { ...headers }
  for (const name of given) {
    const address = URL.parse(String(headers[name]))
    const start = address?.pathname.indexOf('/upload/') ?? -1
    if (address && start >= 0)
      ours[name] = `${publicOrigin(ctx)}${address.pathname.slice(start)}${address.search}`
    else delete ours[name]
  }
  return { ...response, headers: ours }
}
