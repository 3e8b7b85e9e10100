/** A request and response format. Formats are never translated into each other. */
export type ApiFormat = 'openai' | 'anthropic' | 'google'

type Provider = {
  baseUrl: string
  /** Path of the OpenAI-compatible API below the base URL, when the base URL is of another API. */
  compatiblePath?: string
  /** Its own format, which it supports beside OpenAI's. */
  native?: Exclude<ApiFormat, 'openai'>
}

/**
 * Every provider that a model name may begin with, and its address. `<NAME>_BASE_URL` overrides the
 * address: with its version path where the API is OpenAI's own or a copy of it, without one for
 * Anthropic and Google, as the official SDKs read them. The console uses this list too.
 */
export const providers = {
  openai: { baseUrl: 'https://api.openai.com/v1' },
  anthropic: {
    baseUrl: 'https://api.anthropic.com',
    compatiblePath: '/v1',
    native: 'anthropic',
  },
  google: {
    baseUrl: 'https://generativelanguage.googleapis.com',
    compatiblePath: '/v1beta/openai',
    native: 'google',
  },
  openrouter: { baseUrl: 'https://openrouter.ai/api/v1' },
  xai: { baseUrl: 'https://api.x.ai/v1' },
  deepseek: { baseUrl: 'https://api.deepseek.com/v1' },
  mistral: { baseUrl: 'https://api.mistral.ai/v1' },
  groq: { baseUrl: 'https://api.groq.com/openai/v1' },
  cerebras: { baseUrl: 'https://api.cerebras.ai/v1' },
  together: { baseUrl: 'https://api.together.xyz/v1' },
  fireworks: { baseUrl: 'https://api.fireworks.ai/inference/v1' },
  ollama: { baseUrl: 'http://127.0.0.1:11434/v1' },
} as const satisfies Record<string, Provider>

export type ProviderName = keyof typeof providers
export const providerNames = Object.keys(providers) as ProviderName[]

/** Path of a provider's OpenAI-compatible API below its base URL. */
export const openAiCompatiblePath = (provider: ProviderName): string =>
  (providers[provider] as Provider).compatiblePath ?? ''

/** The providers that support a format; all of them support OpenAI's. */
export const providersWithFormat = (format: ApiFormat): ProviderName[] =>
  format === 'openai'
    ? providerNames
    : providerNames.filter(name => (providers[name] as Provider).native === format)
