/**
 * A request and response format; `responses` is OpenAI's Responses API. Formats are never translated into
 * each other.
 */
export type ApiFormat = 'openai' | 'anthropic' | 'google' | 'responses'

/** What a provider's API is, and where. */
export type ProviderApi = {
  baseUrl: string
  /** Path of the OpenAI-compatible API below the base URL, when the base URL is of another API. */
  compatiblePath?: string
  /** Its own format, which it supports beside OpenAI's. */
  native?: 'anthropic' | 'google'
  /** Whether it serves OpenAI's Responses API beside chat completions. */
  responses?: true
  /** How its API keys begin, where no other provider's begin so. */
  keyPrefix?: string
  /** Runs where the operator says, and needs no key. */
  selfHosted?: boolean
}

/** A provider as this service reaches it: a built-in one, or one of the operator's own. */
export type Provider = ProviderApi & {
  name: string
  /** The operator's key: it pays for embeddings and lists models. A client's call brings another. */
  apiKey?: string
  /** Whether the environment sets the address. A self-hosted one is reached only then. */
  isAddressSet: boolean
  /** Its models, where the operator lists them; else it is asked for them. */
  models?: readonly string[]
  /** Whether the address is Azure's: the key then goes into the header `api-key`. */
  isAzure: boolean
  /** The `api-version` that each request of an Azure resource names; undefined for its `/openai/v1`. */
  apiVersion?: string
}

/** Every provider that a model name may begin with, by name: the built-in ones, then the operator's own. */
export type Providers = ReadonlyMap<string, Provider>

/**
 * The providers that are known without being set up, and their addresses. `<NAME>_BASE_URL` overrides an
 * address: with its version path where the API is OpenAI's own or a copy of it, without one for Anthropic
 * and Google, as the official SDKs read them.
 */
export const builtInProviders = {
  openai: { baseUrl: 'https://api.openai.com/v1', responses: true },
  anthropic: {
    baseUrl: 'https://api.anthropic.com',
    compatiblePath: '/v1',
    native: 'anthropic',
    keyPrefix: 'sk-ant-',
  },
  google: {
    baseUrl: 'https://generativelanguage.googleapis.com',
    compatiblePath: '/v1beta/openai',
    native: 'google',
    keyPrefix: 'AIza',
  },
  openrouter: { baseUrl: 'https://openrouter.ai/api/v1', keyPrefix: 'sk-or-', responses: true },
  xai: { baseUrl: 'https://api.x.ai/v1', keyPrefix: 'xai-', responses: true },
  deepseek: { baseUrl: 'https://api.deepseek.com/v1' },
  mistral: { baseUrl: 'https://api.mistral.ai/v1' },
  groq: { baseUrl: 'https://api.groq.com/openai/v1', keyPrefix: 'gsk_', responses: true },
  cerebras: { baseUrl: 'https://api.cerebras.ai/v1', keyPrefix: 'csk-' },
  together: { baseUrl: 'https://api.together.xyz/v1' },
  fireworks: { baseUrl: 'https://api.fireworks.ai/inference/v1', keyPrefix: 'fw_' },
  ollama: { baseUrl: 'http://127.0.0.1:11434/v1', responses: true, selfHosted: true },
  vllm: { baseUrl: 'http://127.0.0.1:8000/v1', responses: true, selfHosted: true },
} as const satisfies Record<string, ProviderApi>

export type BuiltInName = keyof typeof builtInProviders
export const builtInNames = Object.keys(builtInProviders) as BuiltInName[]

/** The built-in provider whose keys begin like this one; undefined when several do. */
export const providerOfKey = (key: string): BuiltInName | undefined =>
  builtInNames.find(name => {
    const { keyPrefix }: ProviderApi = builtInProviders[name]
    return keyPrefix !== undefined && key.startsWith(keyPrefix)
  })

/** The names of the providers that support a format; all of them support OpenAI's chat completions. */
export const providersWithFormat = (providers: Providers, format: ApiFormat): string[] =>
  [...providers.values()]
    .filter(
      ({ native, responses }) =>
        format === 'openai' || (format === 'responses' ? responses === true : native === format),
    )
    .map(({ name }) => name)

/** Whether a self-hosted provider is missing its address. The default of a built-in one is this host. */
export const lacksAddress = ({ selfHosted, isAddressSet }: Provider): boolean =>
  selfHosted === true && !isAddressSet

/**
 * The provider and the rest of a provider-prefixed name; undefined without a provider of this service or
 * without a rest.
 */
export function splitModelName(
  providers: Providers,
  model: string,
): { provider: Provider; name: string } | undefined {
  const slash = model.indexOf('/')
  const provider = providers.get(model.slice(0, Math.max(0, slash)))
  const name = model.slice(slash + 1)
  return provider && name !== '' ? { provider, name } : undefined
}

/** The form of every provider's name. */
export const providerNamePattern = /^[a-z][a-z0-9-]{1,30}$/

/** The first part of the names of a provider's environment variables: `my-models` is `MY_MODELS`. */
export const variablePrefix = (name: string): string => name.toUpperCase().replaceAll('-', '_')
