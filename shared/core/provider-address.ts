import { Refusal } from '#shared/core/errors.ts'
import type { Provider } from '#shared/core/provider-registry.ts'

/** The base URL of a provider's OpenAI-compatible API. */
export const openAiBaseUrl = ({ baseUrl, compatiblePath = '' }: Provider): string =>
  baseUrl + compatiblePath

/** The header that carries a key to a provider's OpenAI-compatible API. */
export const openAiKeyHeader = ({ isAzure }: Provider, key: string): Record<string, string> =>
  isAzure ? { 'api-key': key } : { authorization: `Bearer ${key}` }

/**
 * Whether a provider has the calls of a model below its deployment: an Azure resource whose requests name an
 * `api-version`. A base URL that goes on behind `/openai` names the deployment, or is of `/openai/v1`.
 */
export const hasDeploymentPaths = ({ apiVersion, baseUrl }: Provider): boolean =>
  apiVersion !== undefined && baseUrl.endsWith('/openai')

/** The calls that are below a deployment, by the list of OpenAI's SDK. */
const deploymentPaths = new Set([
  '/completions',
  '/chat/completions',
  '/embeddings',
  '/audio/transcriptions',
  '/audio/translations',
  '/audio/speech',
  '/images/generations',
  '/images/edits',
  '/batches',
])

/**
 * The URL of an OpenAI-compatible call of a model.
 *
 * @param path below the base URL
 * @throws Refusal `invalid` for a deployment whose name is no segment of a path.
 */
export const openAiUrl = (provider: Provider, path: string, model: string): URL =>
  withVersion(provider, openAiBaseUrl(provider) + deploymentPath(provider, path, model))

/** A URL of a provider, with its `api-version`. */
export function withVersion({ apiVersion }: Provider, address: string): URL {
  const url = new URL(address)
  if (apiVersion !== undefined) url.searchParams.set('api-version', apiVersion)
  return url
}

function deploymentPath(provider: Provider, path: string, model: string): string {
  if (!hasDeploymentPaths(provider) || !deploymentPaths.has(path)) return path
  if (/^\.+$/.test(model))
    throw new Refusal(
      'invalid',
      'The model is no name of a deployment',
      `Name one: ${provider.name}/<deployment>`,
    )
  return `/deployments/${encodeURIComponent(model)}${path}`
}
