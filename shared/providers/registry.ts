/**
 * Every provider a model name may begin with, and where its OpenAI-compatible API is.
 * Anthropic's and Google's native APIs have their own addresses. `<NAME>_BASE_URL` overrides.
 */
export const providers = {
  openai: { baseUrl: 'https://api.openai.com/v1' },
  anthropic: { baseUrl: 'https://api.anthropic.com' },
  google: { baseUrl: 'https://generativelanguage.googleapis.com' },
  openrouter: { baseUrl: 'https://openrouter.ai/api/v1' },
  xai: { baseUrl: 'https://api.x.ai/v1' },
  deepseek: { baseUrl: 'https://api.deepseek.com/v1' },
  mistral: { baseUrl: 'https://api.mistral.ai/v1' },
  groq: { baseUrl: 'https://api.groq.com/openai/v1' },
  cerebras: { baseUrl: 'https://api.cerebras.ai/v1' },
  together: { baseUrl: 'https://api.together.xyz/v1' },
  fireworks: { baseUrl: 'https://api.fireworks.ai/inference/v1' },
  ollama: { baseUrl: 'http://127.0.0.1:11434/v1' },
} as const

export type ProviderName = keyof typeof providers
export const providerNames = Object.keys(providers) as ProviderName[]
