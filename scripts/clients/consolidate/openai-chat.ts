import OpenAI from 'openai'
import { Refusal } from '#shared/core/errors.ts'
import { splitModelName, variablePrefix, type Providers } from '#shared/core/provider-registry.ts'
import { completeInForm, openOpenAiClient } from '#shared/models/openai-compatible-model.ts'

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
   * Answers a conversation as JSON of the schema. Some providers do not enforce the schema, so check the answer.
   *
   * @throws Refusal `upstream` when the provider refuses or does not answer for five minutes; the
   *   SDK retries rate limits and server errors (three times).
   */
  answerJson(turns: readonly ChatTurn[], schema: object, signal?: AbortSignal): Promise<ChatAnswer>
}

/** Enough for a long batch and a slow reasoning model. */
const deadlineMs = 300_000

/**
 * Opens `<provider>/<model>` with the operator's key. No call is made yet.
 *
 * @throws Refusal `invalid` when the name has no known provider, or the provider needs a key.
 */
export function openChatModel(model: string, providers: Providers): ChatModel {
  const known = splitModelName(providers, model)
  if (!known)
    throw new Refusal(
      'invalid',
      `${model.slice(0, 64)} names no model we know`,
      `Use <provider>/<model> with a provider of ${[...providers.keys()].join(', ')}`,
    )
  const { provider, name } = known
  const { apiKey = '', isAddressSet, selfHosted } = provider
  if (!apiKey && !isAddressSet && !selfHosted) {
    const variable = `${variablePrefix(provider.name)}_API_KEY`
    throw new Refusal('invalid', `${variable} is missing`, `${model} cannot be used without`)
  }
  const client = openOpenAiClient({ provider, apiKey }, { maxRetries: 3, timeout: deadlineMs })
  const state = { form: 0 }
  return {
    model,
    async answerJson(turns, schema, signal) {
      try {
        const body = { model: name, messages: [...turns] }
        const options = signal ? { signal } : {}
        const { choices, usage } = await completeInForm(client, body, schema, options, state)
        return {
          text: choices?.[0]?.message?.content ?? '',
          inputTokens: usage?.prompt_tokens ?? 0,
          outputTokens: usage?.completion_tokens ?? 0,
        }
      } catch (error) {
        throw error instanceof OpenAI.APIUserAbortError ? error : toRefusal(model, error as Error)
      }
    },
  }
}

function toRefusal(model: string, error: Error): Refusal {
  const status = error instanceof OpenAI.APIError ? error.status : undefined
  return new Refusal(
    'upstream',
    `${model} did not answer: ${error.message.slice(0, 300)}`,
    status === 401 || status === 403
      ? 'Check the provider key and what it may use'
      : 'Try again; if it lasts, check the name of the model and the state of its provider',
  )
}
