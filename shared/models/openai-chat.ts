import OpenAI from 'openai'
import { Refusal } from '#shared/core/errors.ts'
import { splitModelName, variablePrefix, type Providers } from '#shared/core/provider-registry.ts'
import { openOpenAiClient } from '#shared/models/openai-client.ts'

export type ChatTurn = { role: 'system' | 'user' | 'assistant'; content: string }

type ChatAnswer = {
  text: string
  /** As the provider counts them; 0 where it reports none. */
  inputTokens: number
  outputTokens: number
}

/** A language model behind an OpenAI-compatible chat API. */
export type ChatModel = {
  /** Provider-prefixed. */
  readonly model: string
  /**
   * The model's answer to a conversation, as JSON of the schema. Some providers do not enforce the
   * schema, so check the answer.
   *
   * @throws Refusal `upstream` when the provider refuses or does not answer for five minutes; the
   *   SDK retries rate limits and server errors (three times).
   */
  answerJson(turns: readonly ChatTurn[], schema: object, signal?: AbortSignal): Promise<ChatAnswer>
}

/** Enough for a long batch and a slow reasoning model. */
const deadlineMs = 300_000

/**
 * Opens `<provider>/<model>` of one of the providers, with the operator's key. No call is made yet.
 *
 * @throws Refusal `invalid` when the name has no known provider, or the provider needs a key.
 */
export function openChatModel(model: string, providers: Providers): ChatModel {
  const { provider, name } = requireModel(model, providers)
  const { apiKey = '', isAddressSet, selfHosted } = provider
  if (!apiKey && !isAddressSet && !selfHosted) {
    const variable = `${variablePrefix(provider.name)}_API_KEY`
    throw new Refusal('invalid', `${variable} is missing`, `${model} cannot be used without`)
  }
  const client = openOpenAiClient({ provider, apiKey }, { maxRetries: 3, timeout: deadlineMs })
  let responseFormat: ResponseFormat = 'schema'

  return {
    model,
    async answerJson(turns, schema, signal) {
      for (;;) {
        try {
          const completion = await client.chat.completions.create(
            { model: name, messages: [...turns], ...responseFormatParams(responseFormat, schema) },
            signal ? { signal } : {},
          )
          return toChatAnswer(completion)
        } catch (error) {
          const fallback = isFormatRejected(error) ? fallbackFormats[responseFormat] : undefined
          if (!fallback) throwUpstreamRefusal(model, error as Error)
          responseFormat = fallback
        }
      }
    },
  }
}

function requireModel(model: string, providers: Providers) {
  const known = splitModelName(providers, model)
  if (known) return known
  throw new Refusal(
    'invalid',
    `${model.slice(0, 64)} names no model we know`,
    `Use <provider>/<model> with a provider of ${[...providers.keys()].join(', ')}`,
  )
}

/**
 * Ways to ask for the form, the strictest first; a provider that refuses one is asked by the next.
 */
type ResponseFormat = 'schema' | 'json' | 'words'

const fallbackFormats: Record<ResponseFormat, ResponseFormat | undefined> = {
  schema: 'json',
  json: 'words',
  words: undefined,
}

function responseFormatParams(format: ResponseFormat, schema: object) {
  if (format === 'words') return {}
  if (format === 'json') return { response_format: { type: 'json_object' } } as const
  const json_schema = { name: 'answer', strict: true, schema: { ...schema } }
  return { response_format: { type: 'json_schema', json_schema } } as const
}

/** Some answer 404 for a parameter that none of their models supports. */
const isFormatRejected = (error: unknown): boolean =>
  error instanceof OpenAI.APIError &&
  [400, 404, 415, 422].includes(error.status as number) &&
  /response_?format|json_?(schema|object|mode)|structured/i.test(error.message)

function toChatAnswer(completion: OpenAI.Chat.ChatCompletion): ChatAnswer {
  const { choices, usage } = completion
  return {
    text: choices?.[0]?.message?.content ?? '',
    inputTokens: usage?.prompt_tokens ?? 0,
    outputTokens: usage?.completion_tokens ?? 0,
  }
}

function throwUpstreamRefusal(model: string, error: Error): never {
  if (error instanceof OpenAI.APIUserAbortError) throw error
  const status = error instanceof OpenAI.APIError ? error.status : undefined
  throw new Refusal(
    'upstream',
    `${model} did not answer: ${error.message.slice(0, 300)}`,
    status === 401 || status === 403
      ? 'Check the provider key and what it may use'
      : 'Try again; if it lasts, check the name of the model and the state of its provider',
  )
}
