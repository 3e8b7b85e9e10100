import {
  GoogleGenerativeAI,
  GoogleGenerativeAIFetchError,
  type ResponseSchema,
} from '@google/generative-ai'
import {
  completionRefusal,
  completionRetryPolicy,
  completionTokensMax,
  type CompletionModel,
  type CompletionModelSettings,
} from '#shared/models/completion-model.ts'
import type { Schema } from '#shared/core/shape.ts'

/** Gemini models, which enforce the schema. */
export function openGeminiModel(settings: CompletionModelSettings): CompletionModel {
  const client = new GoogleGenerativeAI(settings.apiKey)
  return {
    async complete({ instructions, userPrompt, schema }, signal) {
      const model = client.getGenerativeModel(
        {
          model: settings.name,
          systemInstruction: instructions,
          generationConfig: {
            responseMimeType: 'application/json',
            responseSchema: dropAdditionalProperties(schema) as ResponseSchema,
            maxOutputTokens: completionTokensMax,
          },
        },
        { baseUrl: settings.provider.baseUrl },
      )
      try {
        // The SDK's own timeout leaves its timer running.
        const timeout = AbortSignal.timeout(completionRetryPolicy.timeoutMs)
        const { response } = await model.generateContent(userPrompt, {
          signal: AbortSignal.any([signal, timeout]),
        })
        const [candidate] = response.candidates ?? []
        return {
          // `text()` throws when the answer was blocked.
          text: (candidate?.content?.parts ?? []).map(part => part.text ?? '').join(''),
          isComplete: (candidate?.finishReason ?? 'STOP') === 'STOP',
          inputTokens: response.usageMetadata?.promptTokenCount ?? 0,
          cachedTokens: response.usageMetadata?.cachedContentTokenCount ?? 0,
          outputTokens: response.usageMetadata?.candidatesTokenCount ?? 0,
        }
      } catch (error) {
        signal.throwIfAborted()
        const { status } = error instanceof GoogleGenerativeAIFetchError ? error : {}
        throw completionRefusal(settings, status)
      }
    },
  }
}

/** Gemini's schemas have no `additionalProperties`. */
function dropAdditionalProperties(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(dropAdditionalProperties)
  if (typeof schema !== 'object' || schema === null) return schema
  return Object.fromEntries(
    Object.entries(schema as Schema)
      .filter(([keyword]) => keyword !== 'additionalProperties')
      .map(([keyword, value]) => [keyword, dropAdditionalProperties(value)]),
  )
}
