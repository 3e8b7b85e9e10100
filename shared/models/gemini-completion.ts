import {
  GoogleGenerativeAI,
  GoogleGenerativeAIFetchError,
  type ResponseSchema,
} from '@google/generative-ai'
import { answerPatience, answerTokensMax, refusedAnswer } from '#shared/models/provider-error.ts'
import type { Schema } from '#shared/core/shape.ts'
import type { AnsweringModel, AnsweringSettings } from '#shared/models/completion-model.ts'

/** Gemini models, held to the schema. */
export function openGeminiAnswers(settings: AnsweringSettings): AnsweringModel {
  const client = new GoogleGenerativeAI(settings.apiKey)
  return {
    async answer({ instructions, material, schema }, signal) {
      const model = client.getGenerativeModel(
        {
          model: settings.name,
          systemInstruction: instructions,
          generationConfig: {
            responseMimeType: 'application/json',
            responseSchema: withoutStrictness(schema) as ResponseSchema,
            maxOutputTokens: answerTokensMax,
          },
        },
        { baseUrl: settings.baseUrl },
      )
      try {
        // The SDK's own timeout leaves its timer behind.
        const inTime = AbortSignal.timeout(answerPatience.timeoutMs)
        const { response } = await model.generateContent(material, {
          signal: AbortSignal.any([signal, inTime]),
        })
        const [answered] = response.candidates ?? []
        return {
          // `text()` throws where the answer was blocked; that is no answer like any other.
          text: (answered?.content?.parts ?? []).map(part => part.text ?? '').join(''),
          whole: (answered?.finishReason ?? 'STOP') === 'STOP',
          inputTokens: response.usageMetadata?.promptTokenCount ?? 0,
          outputTokens: response.usageMetadata?.candidatesTokenCount ?? 0,
        }
      } catch (error) {
        signal.throwIfAborted()
        const { status } = error instanceof GoogleGenerativeAIFetchError ? error : {}
        throw refusedAnswer(settings, status)
      }
    },
  }
}

/** Gemini's schemas are a subset: they do not know `additionalProperties`. */
function withoutStrictness(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutStrictness)
  if (typeof schema !== 'object' || schema === null) return schema
  return Object.fromEntries(
    Object.entries(schema as Schema)
      .filter(([keyword]) => keyword !== 'additionalProperties')
      .map(([keyword, value]) => [keyword, withoutStrictness(value)]),
  )
}
