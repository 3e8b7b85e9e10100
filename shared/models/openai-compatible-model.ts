import OpenAI from 'openai'
import { completionRetryPolicy, completionRefusal } from '#shared/models/completion-failure.ts'
import { openOpenAiClient } from '#shared/models/openai-client.ts'
import type {
  CompletionModel,
  CompletionModelSettings,
  CompletionRequest,
} from '#shared/models/completion-model.ts'

/**
 * Models behind an OpenAI-compatible API. They are asked for the schema (`json_schema`, strict); a
 * provider that refuses it is asked for any JSON, and then in words only.
 */
export function openOpenAiCompatibleModel(settings: CompletionModelSettings): CompletionModel {
  const client = openOpenAiClient(settings, {
    maxRetries: completionRetryPolicy.retries,
    timeout: completionRetryPolicy.timeoutMs,
  })
  return {
    async complete({ instructions, userPrompt, schema }, signal) {
      for (const format of responseFormats) {
        try {
          const { choices, usage } = await client.chat.completions.create(
            {
              model: settings.name,
              messages: [
                { role: 'system', content: instructions },
                { role: 'user', content: userPrompt },
              ],
              ...format(schema),
            },
            { signal },
          )
          return {
            text: choices?.[0]?.message?.content ?? '',
            isComplete: !incompleteFinishReasons.has(choices?.[0]?.finish_reason ?? ''),
            inputTokens: usage?.prompt_tokens ?? 0,
            cachedTokens: usage?.prompt_tokens_details?.cached_tokens ?? 0,
            outputTokens: usage?.completion_tokens ?? 0,
          }
        } catch (error) {
          signal.throwIfAborted()
          if (format === textFormat || !isFormatRejected(error)) throw toRefusal(settings, error)
        }
      }
      throw completionRefusal(settings, undefined)
    },
  }
}

/** Reasons of an incomplete answer; providers differ in the name of a normal end. */
const incompleteFinishReasons = new Set<string>([
  'length',
  'model_length',
  'content_filter',
  'insufficient_system_resource',
])

type ResponseFormat = (
  schema: CompletionRequest['schema'],
) => Pick<OpenAI.Chat.ChatCompletionCreateParamsNonStreaming, 'response_format'>

const jsonSchemaFormat: ResponseFormat = schema => ({
  response_format: {
    type: 'json_schema',
    json_schema: { name: 'answer', strict: true, schema: { ...schema } },
  },
})
const jsonObjectFormat: ResponseFormat = () => ({ response_format: { type: 'json_object' } })
const textFormat: ResponseFormat = () => ({})
const responseFormats = [jsonSchemaFormat, jsonObjectFormat, textFormat]

/** Some answer 404 for a parameter that none of their models supports. */
const isFormatRejected = (error: unknown): boolean =>
  error instanceof OpenAI.APIError &&
  [400, 404, 415, 422].includes(error.status as number) &&
  /response_?format|json_?(schema|object|mode)|structured/i.test(error.message)

const toRefusal = (settings: CompletionModelSettings, error: unknown) =>
  completionRefusal(settings, error instanceof OpenAI.APIError ? error.status : undefined)
