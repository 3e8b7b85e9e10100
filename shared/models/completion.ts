import type { CompletionModel, CompletionModelSettings } from '#shared/models/completion-model.ts'

/** Loaded at the first question: the SDKs of OpenAI and Anthropic take 0.25 s of CPU and 30 MB each. */
const openers = {
  anthropic: async () => (await import('#shared/models/anthropic-model.ts')).openAnthropicModel,
  google: async () => (await import('#shared/models/gemini-model.ts')).openGeminiModel,
  compatible: async () =>
    (await import('#shared/models/openai-compatible-model.ts')).openOpenAiCompatibleModel,
} satisfies Record<string, () => Promise<(settings: CompletionModelSettings) => CompletionModel>>

/** Opens a model with its provider's SDK. */
export function openCompletionModel(settings: CompletionModelSettings): CompletionModel {
  let model: Promise<CompletionModel> | undefined
  const open = async (): Promise<CompletionModel> =>
    (await openers[settings.provider.native ?? 'compatible']())(settings)
  return {
    complete: async (question, signal) => (await (model ??= open())).complete(question, signal),
  }
}
