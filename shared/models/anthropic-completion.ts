import Anthropic from '@anthropic-ai/sdk'
import { answerPatience, answerTokensMax, refusedAnswer } from '#shared/models/provider-error.ts'
import type { AnsweringModel, AnsweringSettings } from '#shared/models/completion-model.ts'

/** The name of the one tool: its input is the answer. */
const tool = 'answer'

/**
 * Claude models. The answer is the input of a tool that the model has to call: every model in use knows
 * tools, and only the newest know output formats.
 */
export function openAnthropicAnswers(settings: AnsweringSettings): AnsweringModel {
  const client = new Anthropic({
    apiKey: settings.apiKey,
    baseURL: settings.baseUrl,
    maxRetries: answerPatience.retries,
    timeout: answerPatience.timeoutMs,
  })
  return {
    async answer({ instructions, material, schema }, signal) {
      try {
        const {
          content,
          usage,
          stop_reason: end,
        } = await client.messages.create(
          {
            model: settings.name,
            max_tokens: answerTokensMax,
            system: instructions,
            messages: [{ role: 'user', content: material }],
            tools: [
              {
                name: tool,
                description: 'Give your answer.',
                input_schema: { ...schema, type: 'object' },
              },
            ],
            tool_choice: { type: 'tool', name: tool },
          },
          { signal },
        )
        return {
          text: textOf(content),
          whole: !cutOff.has(end ?? ''),
          inputTokens: usage?.input_tokens ?? 0,
          outputTokens: usage?.output_tokens ?? 0,
        }
      } catch (error) {
        signal.throwIfAborted()
        throw refusedAnswer(
          settings,
          error instanceof Anthropic.APIError ? (error.status as number | undefined) : undefined,
        )
      }
    },
  }
}

/** A tool's input comes as valid JSON also when it is cut off: with what there was until then. */
const cutOff = new Set(['max_tokens', 'model_context_window_exceeded', 'refusal', 'pause_turn'])

/** A model that calls no tool has answered in words. */
function textOf(content: readonly Anthropic.ContentBlock[] = []): string {
  const called = content.find(block => block.type === 'tool_use')
  if (called) return JSON.stringify(called.input)
  return content.map(block => (block.type === 'text' ? block.text : '')).join('')
}
