/**
 * A request and response format; `responses` is OpenAI's Responses API. Formats are never translated into
 * each other.
 */
export type ApiFormat = 'openai' | 'anthropic' | 'google' | 'responses'

type Provider = {
  baseUrl: string
  /** Path of the OpenAI-compatible API below the base URL, when the base URL is of another API. */
  compatiblePath?: string
  /** Its own format, which it supports beside OpenAI's. */
  native?: 'anthropic' | 'google'
  /** Whether it serves OpenAI's Responses API beside chat completions. */
  responses?: true
  /** How its API keys begin, where no other provider's begin so. */
  keyPrefix?: string
  /** Runs where the operator says; it has no address by default and needs no key. */
  selfHosted?: true
}

/**
 * Every provider that a model name may begin with, and its address. `<NAME>_BASE_URL` overrides the
 * address: with its version path where the API is OpenAI's own or a copy of it, without one for
 * Anthropic and Google, as the official SDKs read them. The console uses this list too.
 */
export const providers = {
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
} as const satisfies Record<string, Provider>

export type ProviderName = keyof typeof providers
export const providerNames = Object.keys(providers) as ProviderName[]

/** Path of a provider's OpenAI-compatible API below its base URL. */
export const openAiCompatiblePath = (provider: ProviderName): string =>
  (providers[provider] as Provider).compatiblePath ?? ''

/** The provider whose keys begin like this one; undefined when several do. */
export const providerOfKey = (key: string): ProviderName | undefined =>
  providerNames.find(name => {
    const { keyPrefix } = providers[name] as Provider
    return keyPrefix !== undefined && key.startsWith(keyPrefix)
  })

/** Whether the operator runs it: it is reached where `<NAME>_BASE_URL` says, and needs no key. */
export const isSelfHosted = (provider: ProviderName): boolean =>
  (providers[provider] as Provider).selfHosted ?? false

/** The providers that support a format; all of them support OpenAI's chat completions. */
export const providersWithFormat = (format: ApiFormat): ProviderName[] =>
  providerNames.filter(name => {
    const { native, responses } = providers[name] as Provider
    return format === 'openai' || (format === 'responses' ? responses === true : native === format)
  })
