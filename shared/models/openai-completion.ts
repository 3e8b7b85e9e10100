import OpenAI from 'openai'
import { answerPatience, refusedAnswer } from '#shared/models/provider-error.ts'
import { compatiblePathOf } from '#shared/core/provider-registry.ts'
import type {
  AnsweringModel,
  AnsweringSettings,
  Question,
} from '#shared/models/completion-model.ts'

/**
 * Models behind an OpenAI-compatible API. They are held to the schema (`json_schema`, strict); a provider
 * that does not take that is asked for any JSON, and then in words only.
 */
export function openCompatibleAnswers(settings: AnsweringSettings): AnsweringModel {
  const client = new OpenAI({
    apiKey: settings.apiKey || 'none',
    baseURL: settings.baseUrl + compatiblePathOf(settings.provider),
    maxRetries: answerPatience.retries,
    timeout: answerPatience.timeoutMs,
  })
  return {
    async answer({ instructions, material, schema }, signal) {
      for (const form of forms) {
        try {
          const { choices, usage } = await client.chat.completions.create(
            {
              model: settings.name,
              messages: [
                { role: 'system', content: instructions },
                { role: 'user', content: material },
              ],
              ...form(schema),
            },
            { signal },
          )
          return {
            text: choices?.[0]?.message?.content ?? '',
            whole: !cutOff.has(choices?.[0]?.finish_reason ?? ''),
            inputTokens: usage?.prompt_tokens ?? 0,
            outputTokens: usage?.completion_tokens ?? 0,
          }
        } catch (error) {
          signal.throwIfAborted()
          if (form === inWords || !isFormRefused(error)) throw refusalOf(settings, error)
        }
      }
      throw refusedAnswer(settings, undefined)
    },
  }
}

/** As the providers of this API call it; each calls the usual end by a word of its own. */
const cutOff = new Set<string>([
  'length',
  'model_length',
  'content_filter',
  'insufficient_system_resource',
])

type Form = (
  schema: Question['schema'],
) => Pick<OpenAI.Chat.ChatCompletionCreateParamsNonStreaming, 'response_format'>

const bySchema: Form = schema => ({
  response_format: {
    type: 'json_schema',
    json_schema: { name: 'answer', strict: true, schema: { ...schema } },
  },
})
const asJson: Form = () => ({ response_format: { type: 'json_object' } })
const inWords: Form = () => ({})
const forms = [bySchema, asJson, inWords]

/** Some answer 404 for a parameter that none of their models takes. */
const isFormRefused = (error: unknown): boolean =>
  error instanceof OpenAI.APIError &&
  [400, 404, 415, 422].includes(error.status as number) &&
  /response_?format|json_?(schema|object|mode)|structured/i.test(error.message)

const refusalOf = (settings: AnsweringSettings, error: unknown) =>
  refusedAnswer(settings, error instanceof OpenAI.APIError ? error.status : undefined)
