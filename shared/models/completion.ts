import { openAnthropicAnswers } from '#shared/models/anthropic-completion.ts'
import { openGeminiAnswers } from '#shared/models/gemini-completion.ts'
import { openCompatibleAnswers } from '#shared/models/openai-completion.ts'
import type { ProviderName } from '#shared/core/provider-registry.ts'
import type { AnsweringModel, AnsweringSettings } from '#shared/models/completion-model.ts'

const native: Partial<Record<ProviderName, (settings: AnsweringSettings) => AnsweringModel>> = {
  anthropic: openAnthropicAnswers,
  google: openGeminiAnswers,
}

/** Opens a model with the SDK of its provider; no call is made yet. */
export const openAnsweringModel = (settings: AnsweringSettings): AnsweringModel =>
  (native[settings.provider] ?? openCompatibleAnswers)(settings)
