import Anthropic from '@anthropic-ai/sdk'
import {
  completionRefusal,
  completionRetryPolicy,
  completionTokensMax,
  type CompletionModel,
  type CompletionModelSettings,
} from '#shared/models/completion-model.ts'

const answerTool = 'answer'

/** Claude models. The answer is the input of a tool that the model must call: only the newest have output formats. */
export function openAnthropicModel(settings: CompletionModelSettings): CompletionModel {
  const client = new Anthropic({
    apiKey: settings.apiKey,
    baseURL: settings.provider.baseUrl,
    maxRetries: completionRetryPolicy.retries,
    timeout: completionRetryPolicy.timeoutMs,
  })
  return {
    async complete({ instructions, userPrompt, prefixLength = 0, schema }, signal) {
      const description = 'Give your answer.'
      const input_schema = { ...schema, type: 'object' } as const
      try {
        const body = {
          model: settings.name,
          max_tokens: completionTokensMax,
          system: toSystem(instructions),
          messages: [{ role: 'user' as const, content: toContent(userPrompt, prefixLength) }],
          tools: [{ name: answerTool, description, input_schema }],
          tool_choice: { type: 'tool' as const, name: answerTool },
        }
        const { content, usage, stop_reason } = await client.messages.create(body, { signal })
        return {
          text: completionText(content),
          isComplete: !incompleteStopReasons.has(stop_reason ?? ''),
          inputTokens: allInputTokens(usage),
          cachedTokens: usage?.cache_read_input_tokens ?? 0,
          outputTokens: usage?.output_tokens ?? 0,
        }
      } catch (error) {
        signal.throwIfAborted()
        const { status } = error instanceof Anthropic.APIError ? error : {}
        throw completionRefusal(settings, status as number | undefined)
      }
    },
  }
}

/** About 1,024 tokens: no model keeps a shorter prefix. */
const prefixMin = 4_000

const kept = { cache_control: { type: 'ephemeral' } } as const

const toSystem = (instructions: string): string | Anthropic.TextBlockParam[] =>
  instructions.length < prefixMin ? instructions : [{ type: 'text', text: instructions, ...kept }]

/** Marks the prefix, with the instructions and the tool before it, for the provider's cache. */
const toContent = (
  userPrompt: string,
  prefixLength: number,
): Anthropic.MessageCreateParams['messages'][number]['content'] =>
  prefixLength < prefixMin
    ? userPrompt
    : [
        { type: 'text', text: userPrompt.slice(0, prefixLength), ...kept },
        { type: 'text', text: userPrompt.slice(prefixLength) },
      ]

/** `input_tokens` does not count reads and writes of the cache. */
const allInputTokens = (usage: Partial<Anthropic.Usage> | undefined): number =>
  (usage?.input_tokens ?? 0) +
  (usage?.cache_read_input_tokens ?? 0) +
  (usage?.cache_creation_input_tokens ?? 0)

/** The input of a tool is valid JSON even when it was cut off. */
const incompleteStopReasons = new Set([
  'max_tokens',
  'model_context_window_exceeded',
  'refusal',
  'pause_turn',
])

/** A model that calls no tool answers in text. */
function completionText(content: readonly Anthropic.ContentBlock[] = []): string {
  const toolUse = content.find(block => block.type === 'tool_use')
  if (toolUse) return JSON.stringify(toolUse.input)
  return content.map(block => (block.type === 'text' ? block.text : '')).join('')
}
