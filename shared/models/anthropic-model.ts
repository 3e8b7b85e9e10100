import Anthropic from '@anthropic-ai/sdk'
import {
  completionRefusal,
  completionRetryPolicy,
  completionTokensMax,
  type CompletionModel,
  type CompletionModelSettings,
} from '#shared/models/completion-model.ts'

/** The name of the only tool: its input is the answer. */
const answerTool = 'answer'

/**
 * Claude models. The answer is the input of a tool that the model must call: every model in use
 * supports tools, and only the newest support output formats.
 */
export function openAnthropicModel(settings: CompletionModelSettings): CompletionModel {
  const client = new Anthropic({
    apiKey: settings.apiKey,
    baseURL: settings.provider.baseUrl,
    maxRetries: completionRetryPolicy.retries,
    timeout: completionRetryPolicy.timeoutMs,
  })
  return {
    async complete({ instructions, userPrompt, prefixLength = 0, schema }, signal) {
      try {
        const {
          content,
          usage,
          stop_reason: end,
        } = await client.messages.create(
          {
            model: settings.name,
            max_tokens: completionTokensMax,
            system: toSystem(instructions),
            messages: [{ role: 'user', content: toContent(userPrompt, prefixLength) }],
            tools: [
              {
                name: answerTool,
                description: 'Give your answer.',
                input_schema: { ...schema, type: 'object' },
              },
            ],
            tool_choice: { type: 'tool', name: answerTool },
          },
          { signal },
        )
        return {
          text: completionText(content),
          isComplete: !incompleteStopReasons.has(end ?? ''),
          inputTokens: allInputTokens(usage),
          cachedTokens: usage?.cache_read_input_tokens ?? 0,
          outputTokens: usage?.output_tokens ?? 0,
        }
      } catch (error) {
        signal.throwIfAborted()
        throw completionRefusal(
          settings,
          error instanceof Anthropic.APIError ? (error.status as number | undefined) : undefined,
        )
      }
    },
  }
}

/** About 1,024 tokens: a shorter prefix is kept by no model. */
const prefixMin = 4_000

const kept = { cache_control: { type: 'ephemeral' } } as const

const toSystem = (instructions: string): string | Anthropic.TextBlockParam[] =>
  instructions.length < prefixMin ? instructions : [{ type: 'text', text: instructions, ...kept }]

/** Marks the prefix, with the instructions and the tool before it, to be kept for the next call. */
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

/** `input_tokens` leaves out what was read from the cache or written to it. */
const allInputTokens = (usage: Partial<Anthropic.Usage> | undefined): number =>
  (usage?.input_tokens ?? 0) +
  (usage?.cache_read_input_tokens ?? 0) +
  (usage?.cache_creation_input_tokens ?? 0)

/** A tool's input is valid JSON even when it was cut off: it then holds the fields up to there. */
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
