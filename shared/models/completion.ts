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

/** Opens a model with its provider's SDK, without a call. */
export const openCompletionModel = (settings: CompletionModelSettings): CompletionModel =>
  (nativeOpeners[settings.provider] ?? openOpenAiCompatibleModel)(settings)
