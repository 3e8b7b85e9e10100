import { isForwardedHeader, type HeaderSettings } from '#api/proxy/forwarded-headers.ts'
import type { Context } from 'koa'
import type { IncomingHttpHeaders } from 'node:http'
import { userHeaderName } from '#api/edge/memory-key-auth.ts'
import { providerKeyFromRequest } from '#api/proxy/credentials.ts'
import { namesIn } from '#api/proxy/response-headers.ts'
import { containsKey } from '#shared/access/key.ts'
import type { Config } from '#shared/core/config.ts'
import { Refusal } from '#shared/core/errors.ts'
import {
  lacksAddress,
  openAiKeyHeader,
  openAiUrl,
  providerOfKey,
  providersWithFormat,
  variablePrefix,
  withVersion,
  type ApiFormat,
  type Provider,
  type Providers,
} from '#shared/core/provider-registry.ts'
import type { ModelRef } from '#shared/models/resolve-model.ts'

/** The URL of a call at its provider, and its headers. */
export type ProviderTarget = { url: URL; headers: Record<string, string> }

/** Switches and keys in a query: Google's clients may send theirs there. */
const ownQueryParameters = new Set(
  'memory mode memory_mode store store_response ttl sessions session_id embeddings key access_token'.split(
    ' ',
  ),
)

/** OpenAI's formats are called below the path of a provider's compatible API. */
export const isOpenAiFormat = (format: ApiFormat): boolean =>
  format === 'openai' || format === 'responses'

/**
 * The URL of a call at its provider, and its headers: the forwarded ones and the provider key. Base URLs come from the
 * registry or the environment, never from a request.
 *
 * @param path below the base URL; in OpenAI's formats below the path of its compatible API
 * @throws Refusal `invalid` for a self-hosted provider without `<NAME>_BASE_URL`, and as `openAiUrl`.
 */
export function buildProviderTarget(
  { headers, querystring }: Pick<Context, 'headers' | 'querystring'>,
  { providers, providerHeaders }: Pick<Config, 'providers' | 'providerHeaders'>,
  {
    model,
    format,
    path,
    key,
  }: { model: ModelRef; format: ApiFormat; path: string; key?: string | undefined },
): ProviderTarget {
  // Every reference to a model is of a provider of this configuration.
  const provider = providers.get(model.provider)!
  // Its default is localhost, which here is the host of this service.
  if (lacksAddress(provider)) {
    throw new Refusal(
      'invalid',
      `${provider.name} is not available here`,
      `The operator sets ${variablePrefix(provider.name)}_BASE_URL to where it is`,
    )
  }
  const url = isOpenAiFormat(format)
    ? openAiUrl(provider, path, model.name)
    : withVersion(provider, provider.baseUrl + path)
  if (querystring !== '') {
    for (const [name, value] of new URLSearchParams(querystring)) {
      const isOurs =
        ownQueryParameters.has(name) ||
        (name === 'api-version' && provider.apiVersion !== undefined)
      if (!isOurs && !containsKey(name) && !containsKey(value)) url.searchParams.append(name, value)
    }
  }
  const credential = key === undefined ? {} : credentialHeader(provider, format, key)
  return {
    url,
    headers: {
      ...pickForwardedHeaders(headers, providerHeaders),
      'accept-encoding': 'identity',
      ...credential,
    },
  }
}

/** The header that carries the provider key in a format. */
function credentialHeader(
  provider: Provider,
  format: ApiFormat,
  key: string,
): Record<string, string> {
  if (format === 'google') return { 'x-goog-api-key': key }
  // Anthropic takes API keys in `x-api-key`, and subscription tokens as bearer tokens.
  if (format === 'anthropic')
    return key.startsWith('sk-ant-oat') ? { authorization: `Bearer ${key}` } : { 'x-api-key': key }
  return openAiKeyHeader(provider, key)
}

/**
 * The provider of a request that names no model: the one that the header `X-Provider` or the request's own key shows,
 * else the first that serves the format.
 *
 * @throws Refusal `invalid` for a provider that does not serve it.
 */
export const pickProvider = (
  request: Pick<Context, 'headers' | 'query' | 'querystring'>,
  format: ApiFormat,
  providers: Providers,
): string => namedProvider(request, format, providers) ?? providersWithFormat(providers, format)[0]!

/** As `pickProvider`; undefined where the request shows none. */
export function namedProvider(
  request: Pick<Context, 'headers' | 'query' | 'querystring'>,
  format: ApiFormat,
  providers: Providers,
): string | undefined {
  const served = providersWithFormat(providers, format)
  const name = String(request.headers['x-provider'] ?? '')
    .trim()
    .toLowerCase()
  const named = served.find(provider => provider === name)
  if (name !== '' && named === undefined) {
    throw new Refusal(
      'invalid',
      `X-Provider: ${name.slice(0, 32)} does not serve this path`,
      `It is served by ${served.join(', ')}`,
    )
  }
  const ofKey = providerOfKey(providerKeyFromRequest(request) ?? '')
  return named ?? served.find(provider => provider === ofKey)
}

/** The headers of a request that its provider gets; none that holds a Memory Key. */
function pickForwardedHeaders(
  headers: IncomingHttpHeaders,
  settings: HeaderSettings,
): Record<string, string> {
  const ofConnection = namesIn(headers.connection)
  const ofUser = userHeaderName(headers)
  const picked: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value !== 'string' || value === '' || ofConnection.includes(name)) continue
    if (name === ofUser) continue
    if (containsKey(name) || containsKey(value)) continue
    if (isForwardedHeader(name, value, settings)) picked[name] = value
  }
  return picked
}
