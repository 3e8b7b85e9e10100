import type { Context } from 'koa'
import type { Config } from '#shared/core/config.ts'
import { Refusal } from '#shared/core/errors.ts'
import { containsKey } from '#shared/access/key.ts'
import type { ModelRef } from '#shared/models/resolve-model.ts'
import { openAiCompatiblePath, providers, type ApiFormat } from '#shared/core/provider-registry.ts'

/** Where a call goes and what it carries in its head. */
export type ProviderTarget = { url: URL; headers: Record<string, string> }

/** The only headers of a request that a provider gets to see. */
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

/** Switches, and keys: Google's clients may put theirs into the query. */
const ownQueryParameters = new Set(['memory', 'mode', 'store', 'key', 'access_token'])

/**
 * The address of a call at its provider and the headers it takes along: those on the list, and the one
 * key. Addresses are the operator's, from the registry or the environment; nothing in a request can
 * name one.
 *
 * @param path below the base URL, for OpenAI's format below the path of that
 * @throws Refusal `invalid` for Ollama where the operator has not said where it is.
 */
export function buildProviderTarget(
  ctx: Context,
  { providers: settings }: Pick<Config, 'providers'>,
  { model, format, path, key }: { model: ModelRef; format: ApiFormat; path: string; key?: string },
): ProviderTarget {
  const { provider } = model
  const configured = settings[provider]?.baseUrl
  // By default it is on the machine of whoever runs it: here that would be this service's own.
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

/** How a provider wants its key, in the format it is spoken to. */
function credentialHeader(format: ApiFormat, key: string): Record<string, string> {
  if (format === 'google') return { 'x-goog-api-key': key }
  // Anthropic takes keys by their own header, and tokens of its subscriptions as a bearer's.
  if (format === 'anthropic' && !key.startsWith('sk-ant-oat')) return { 'x-api-key': key }
  return { authorization: `Bearer ${key}` }
}
