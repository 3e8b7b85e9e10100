import type { Context } from 'koa'
import type { Config } from '#shared/core/config.ts'
import { Refusal } from '#shared/core/errors.ts'
import { containsKey } from '#shared/access/key.ts'
import type { ModelRef } from '#shared/models/resolve-model.ts'
import { openAiCompatiblePath, providers, type ApiFormat } from '#shared/core/provider-registry.ts'

/** The URL of a call at its provider, and its headers. */
export type ProviderTarget = { url: URL; headers: Record<string, string> }

/** The only headers of a request that are forwarded to a provider. */
const forwardedHeaders = [
  'content-type',
  'accept',
  'user-agent',
  'anthropic-version',
  'anthropic-beta',
  'openai-organization',
  'openai-project',
  'openai-beta',
  'x-goog-api-client',
]

/** Switches and keys: Google's clients may send theirs in the query. */
const ownQueryParameters = new Set(['memory', 'mode', 'store', 'key', 'access_token'])

/**
 * The URL of a call at its provider, and its headers: the forwarded ones and the provider key. Base URLs
 * come from the registry or the environment, never from a request.
 *
 * @param path below the base URL; in OpenAI's format below the path of its compatible API
 * @throws Refusal `invalid` for Ollama without `OLLAMA_BASE_URL`.
 */
export function buildProviderTarget(
  ctx: Context,
  { providers: settings }: Pick<Config, 'providers'>,
  { model, format, path, key }: { model: ModelRef; format: ApiFormat; path: string; key?: string },
): ProviderTarget {
  const { provider } = model
  const configured = settings[provider]?.baseUrl
  // Ollama's default is localhost, which here is the host of this service.
  if (provider === 'ollama' && !configured) {
    throw new Refusal(
      'invalid',
      'ollama is not available here',
      'The operator sets OLLAMA_BASE_URL to where it is',
    )
  }
  const base = configured ?? providers[provider].baseUrl
  const url = new URL(base + (format === 'openai' ? openAiCompatiblePath(provider) : '') + path)
  for (const [name, value] of new URLSearchParams(ctx.querystring)) {
    if (!ownQueryParameters.has(name) && !containsKey(name) && !containsKey(value))
      url.searchParams.append(name, value)
  }
  return {
    url,
    headers: {
      ...pickForwardedHeaders(ctx),
      'accept-encoding': 'identity',
      ...(key !== undefined && credentialHeader(format, key)),
    },
  }
}

function pickForwardedHeaders(ctx: Context): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const name of forwardedHeaders) {
    const value = ctx.get(name)
    if (value !== '' && !containsKey(value)) headers[name] = value
  }
  return headers
}

/** The header that carries the provider key in a format. */
function credentialHeader(format: ApiFormat, key: string): Record<string, string> {
  if (format === 'google') return { 'x-goog-api-key': key }
  // Anthropic takes API keys in `x-api-key`, and subscription tokens as bearer tokens.
  if (format === 'anthropic' && !key.startsWith('sk-ant-oat')) return { 'x-api-key': key }
  return { authorization: `Bearer ${key}` }
}
