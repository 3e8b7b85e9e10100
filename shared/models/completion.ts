import type { ProviderName } from '#shared/core/provider-registry.ts'
import type { CompletionModel, CompletionModelSettings } from '#shared/models/completion-model.ts'

type OpenModel = (settings: CompletionModelSettings) => CompletionModel

/** The SDKs of OpenAI and Anthropic take 0.25 s of CPU and 30 MB each: most processes never ask a model. */
const openers = {
  anthropic: async () => (await import('#shared/models/anthropic-model.ts')).openAnthropicModel,
  google: async () => (await import('#shared/models/gemini-model.ts')).openGeminiModel,
  compatible: async () =>
    (await import('#shared/models/openai-compatible-model.ts')).openOpenAiCompatibleModel,
} satisfies Partial<Record<ProviderName | 'compatible', () => Promise<OpenModel>>>

/** Opens a model with its provider's SDK, which is loaded with the first question. */
export function openCompletionModel(settings: CompletionModelSettings): CompletionModel {
  const { provider } = settings
  let model: Promise<CompletionModel> | undefined
  const open = async (): Promise<CompletionModel> => {
    const opener = provider === 'anthropic' || provider === 'google' ? provider : 'compatible'
    return (await openers[opener]())(settings)
  }
  return {
    complete: async (question, signal) => (await (model ??= open())).complete(question, signal),
  }
}
