import type { Context } from 'koa'
import type { Config } from '#shared/core/config.ts'
import { pickForwardedHeaders } from '#api/proxy/forwarded-headers.ts'
import { Refusal } from '#shared/core/errors.ts'
import { containsKey } from '#shared/access/key.ts'
import type { ModelRef } from '#shared/models/resolve-model.ts'
import {
  lacksAddress,
  openAiKeyHeader,
  openAiUrl,
  variablePrefix,
  withVersion,
  type ApiFormat,
  type Provider,
} from '#shared/core/provider-registry.ts'

/** The URL of a call at its provider, and its headers. */
export type ProviderTarget = { url: URL; headers: Record<string, string> }

/** Switches and keys: Google's clients may send theirs in the query. */
const ownQueryParameters = new Set([
  'memory',
  'mode',
  'store',
  'sessions',
  'session_id',
  'embeddings',
  'key',
  'access_token',
])

/**
 * The URL of a call at its provider, and its headers: the forwarded ones and the provider key. Base URLs
 * come from the registry or the environment, never from a request.
 *
 * @param path below the base URL; in OpenAI's formats below the path of its compatible API
 * @throws Refusal `invalid` for a self-hosted provider without `<NAME>_BASE_URL`, and as `openAiUrl`.
 */
export function buildProviderTarget(
  ctx: Context,
  { providers }: Pick<Config, 'providers'>,
  { model, format, path, key }: { model: ModelRef; format: ApiFormat; path: string; key?: string },
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
  for (const [name, value] of new URLSearchParams(ctx.querystring)) {
    const isOurs =
      ownQueryParameters.has(name) || (name === 'api-version' && provider.apiVersion !== undefined)
    if (!isOurs && !containsKey(name) && !containsKey(value)) url.searchParams.append(name, value)
  }
  return {
    url,
    headers: {
      ...pickForwardedHeaders(ctx.headers),
      'accept-encoding': 'identity',
      ...(key !== undefined && credentialHeader(provider, format, key)),
    },
  }
}

const isOpenAiFormat = (format: ApiFormat): boolean => format === 'openai' || format === 'responses'

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
