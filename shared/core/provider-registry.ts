import rows from '#shared/core/built-in-providers.json' with { type: 'json' }
import { refusal } from '#shared/core/refusal.ts'

/** A request and response format; `responses` is OpenAI's Responses API. Formats are never translated. */
export type ApiFormat = 'openai' | 'anthropic' | 'google' | 'responses'

export type ProviderApi = {
  baseUrl: string
  /** Path of the OpenAI-compatible API below the base URL, when the base URL is of another API. */
  compatiblePath?: string
  /** A format of its own in addition to OpenAI's. */
  native?: 'anthropic' | 'google'
  /** Whether it serves OpenAI's Responses API. */
  responses?: true
  /** How its API keys begin, where that is its own. */
  keyPrefix?: string
  /** Run by the operator; needs no key. */
  selfHosted?: boolean
}

export type Provider = ProviderApi & {
  name: string
  /** The operator's key, which pays for embeddings and lists models. A client's call has its own. */
  apiKey?: string
  /** Whether the environment sets the address; a self-hosted one is reached only then. */
  isAddressSet: boolean
  /** Its models, where the operator lists them. */
  models?: readonly string[]
  /** Azure takes the key in the header `api-key`. */
  isAzure: boolean
  /** The `api-version` that each request of an Azure resource names; undefined for its `/openai/v1`. */
  apiVersion?: string
}

/** By name: the built-in ones, then the operator's own. */
export type Providers = ReadonlyMap<string, Provider>

/**
 * `<NAME>_BASE_URL` overrides an address: with its version path for OpenAI's API and copies of it, without one for
 * Anthropic and Google, as the official SDKs read them.
 */
export const builtInProviders = rows as Record<BuiltInName, ProviderApi>

export type BuiltInName = keyof typeof rows
export const builtInNames = Object.keys(builtInProviders) as BuiltInName[]

/** The built-in provider whose keys begin like this one; undefined when several do. */
export const providerOfKey = (key: string): BuiltInName | undefined =>
  builtInNames.find(name => {
    const { keyPrefix }: ProviderApi = builtInProviders[name]
    return keyPrefix !== undefined && key.startsWith(keyPrefix)
  })

/** All providers support OpenAI's chat completions. */
export const providersWithFormat = (providers: Providers, format: ApiFormat): string[] =>
  [...providers.values()].filter(one => servesFormat(one, format)).map(({ name }) => name)

export const servesFormat = ({ native, responses }: Provider, format: ApiFormat): boolean =>
  format === 'openai' || (format === 'responses' ? responses === true : native === format)

/** Whether a self-hosted provider is missing its address. The default of a built-in one is this host. */
export const lacksAddress = ({ selfHosted, isAddressSet }: Provider): boolean =>
  selfHosted === true && !isAddressSet

/** Splits `<provider>/<name>`; undefined without a known provider or without a name. */
export function splitModelName(
  providers: Providers,
  model: string,
): { provider: Provider; name: string } | undefined {
  const slash = model.indexOf('/')
  const provider = providers.get(model.slice(0, Math.max(0, slash)))
  const name = model.slice(slash + 1)
  return provider && name !== '' ? { provider, name } : undefined
}

export const providerNamePattern = /^[a-z][a-z0-9-]{1,30}$/

/** `MY_MODELS` for `my-models`. */
export const variablePrefix = (name: string): string => name.toUpperCase().replaceAll('-', '_')

export const openAiBaseUrl = ({ baseUrl, compatiblePath = '' }: Provider): string =>
  baseUrl + compatiblePath

export const openAiKeyHeader = ({ isAzure }: Provider, key: string): Record<string, string> =>
  isAzure ? { 'api-key': key } : { authorization: `Bearer ${key}` }

/**
 * Whether calls of a model go below its deployment: at an Azure resource whose requests name an `api-version`. A base
 * URL that continues after `/openai` names the deployment itself, or is of `/openai/v1`.
 */
export const hasDeploymentPaths = ({ apiVersion, baseUrl }: Provider): boolean =>
  apiVersion !== undefined && baseUrl.endsWith('/openai')

/** Calls below a deployment, by the list of OpenAI's SDK. */
const deploymentPaths = new Set(
  (
    '/completions /chat/completions /embeddings /audio/transcriptions /audio/translations ' +
    '/audio/speech /images/generations /images/edits /batches'
  ).split(' '),
)

/** @param path below the base URL. @throws Refusal `invalid` for a deployment whose name is no segment of a path. */
export const openAiUrl = (provider: Provider, path: string, model: string): URL =>
  withVersion(provider, openAiBaseUrl(provider) + deploymentPath(provider, path, model))

export function withVersion({ apiVersion }: Provider, address: string): URL {
  const url = new URL(address)
  if (apiVersion !== undefined) url.searchParams.set('api-version', apiVersion)
  return url
}

function deploymentPath(provider: Provider, path: string, model: string): string {
  if (!hasDeploymentPaths(provider) || !deploymentPaths.has(path)) return path
  if (/^\.+$/.test(model)) throw refusal('invalid', 'noDeployment', { name: provider.name })
  return `/deployments/${encodeURIComponent(model)}${path}`
}
