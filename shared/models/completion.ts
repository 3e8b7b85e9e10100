import { openAnthropicModel } from '#shared/models/anthropic-model.ts'
import { openGeminiModel } from '#shared/models/gemini-model.ts'
import { openOpenAiCompatibleModel } from '#shared/models/openai-compatible-model.ts'
import type { ProviderName } from '#shared/core/provider-registry.ts'
import type { CompletionModel, CompletionModelSettings } from '#shared/models/completion-model.ts'

const nativeOpeners: Partial<
  Record<ProviderName, (settings: CompletionModelSettings) => CompletionModel>
> = {
  anthropic: openAnthropicModel,
  google: openGeminiModel,
}

/** Opens a model with the SDK of its provider; no call is made yet. */
export const openCompletionModel = (settings: CompletionModelSettings): CompletionModel =>
  (nativeOpeners[settings.provider] ?? openOpenAiCompatibleModel)(settings)
