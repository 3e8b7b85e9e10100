import OpenAI, { AzureOpenAI } from 'openai'
import {
  hasDeploymentPaths,
  openAiBaseUrl,
  openAiKeyHeader,
} from '#shared/core/provider-registry.ts'
import {
  completionRefusal,
  completionRetryPolicy,
  type CompletionModel,
  type CompletionModelSettings,
} from '#shared/models/completion-model.ts'
import type { ProviderAccess } from '#shared/models/model-catalog.ts'

/** Models behind an OpenAI-compatible API. */
export function openOpenAiCompatibleModel(settings: CompletionModelSettings): CompletionModel {
  const client = openOpenAiClient(settings, {
    maxRetries: completionRetryPolicy.retries,
    timeout: completionRetryPolicy.timeoutMs,
  })
  return {
    async complete({ instructions, userPrompt, picture, schema }, signal) {
      const url = picture && `data:${picture.mediaType};base64,${picture.base64}`
      const text = { type: 'text', text: userPrompt } as const
      const content = url ? [text, { type: 'image_url', image_url: { url } } as const] : userPrompt
      const messages = [
        { role: 'system', content: instructions },
        { role: 'user', content },
      ] as const
      try {
        const body = { model: settings.name, messages: [...messages] }
        const { choices, usage } = await completeInForm(client, body, schema, { signal })
        return {
          text: choices?.[0]?.message?.content ?? '',
          isComplete: !incompleteFinishReasons.has(choices?.[0]?.finish_reason ?? ''),
          inputTokens: usage?.prompt_tokens ?? 0,
          cachedTokens: usage?.prompt_tokens_details?.cached_tokens ?? 0,
          outputTokens: usage?.completion_tokens ?? 0,
        }
      } catch (error) {
        signal.throwIfAborted()
        const status = error instanceof OpenAI.APIError ? error.status : undefined
        throw completionRefusal(settings, status as number | undefined)
      }
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

/** Ways to ask for the form of an answer, the strictest first. */
const forms: ((
  schema: object,
) => Pick<OpenAI.Chat.ChatCompletionCreateParamsNonStreaming, 'response_format'>)[] = [
  schema => ({
    response_format: {
      type: 'json_schema',
      json_schema: { name: 'answer', strict: true, schema: { ...schema } },
    },
  }),
  () => ({ response_format: { type: 'json_object' } }),
  () => ({}),
]

/**
 * Asks for an answer as JSON of a schema. A provider that refuses this form is asked for any JSON, then in words only.
 *
 * @param state the number of the form to begin with; it is raised with each refusal
 */
export async function completeInForm(
  client: OpenAI,
  body: Omit<OpenAI.Chat.ChatCompletionCreateParamsNonStreaming, 'response_format'>,
  schema: object,
  options: { signal?: AbortSignal },
  state = { form: 0 },
): Promise<OpenAI.Chat.ChatCompletion> {
  for (; ; state.form++) {
    try {
      return await client.chat.completions.create(
        { ...body, ...forms[state.form]!(schema) },
        options,
      )
    } catch (error) {
      if (state.form === forms.length - 1 || !isFormRejected(error)) throw error
    }
  }
}

/** Some answer 404 for a parameter that none of their models supports. */
const isFormRejected = (error: unknown): boolean =>
  error instanceof OpenAI.APIError &&
  [400, 404, 415, 422].includes(error.status as number) &&
  /response_?format|json_?(schema|object|mode)|structured/i.test(error.message)

/** The SDK's client for the OpenAI-compatible API of a provider. */
export function openOpenAiClient(
  { provider, apiKey }: ProviderAccess,
  options: { maxRetries: number; timeout: number; fetch?: typeof fetch },
): OpenAI {
  // The SDK asks for a key also where none is needed.
  const key = apiKey || 'none'
  const { apiVersion } = provider
  const client = { ...options, apiKey: key, baseURL: openAiBaseUrl(provider) }
  if (apiVersion !== undefined && hasDeploymentPaths(provider))
    return new AzureOpenAI({ ...client, apiVersion })
  return new OpenAI({
    ...client,
    ...(apiVersion !== undefined && { defaultQuery: { 'api-version': apiVersion } }),
    ...(provider.isAzure && {
      defaultHeaders: { authorization: null, ...openAiKeyHeader(provider, key) },
    }),
  })
}
