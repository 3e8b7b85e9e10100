import type { Batch, CommitEntry } from '#scripts/clients/consolidate/client.ts'
import { Refusal } from '#shared/core/errors.ts'
import { requireStandaloneProse } from '#shared/vault/consolidate/output-contract.ts'
import type { ChatModel, ChatTurn } from '#scripts/clients/consolidate/openai-chat.ts'
import { shape, type Shape } from '#shared/core/shape.ts'

export type ReflectionOutput = {
  entries: CommitEntry[]
  /** Number of requests to the model. */
  attempts: number
  inputTokens: number
  outputTokens: number
}

const attemptsMax = 3

/** Without bounds, because providers that enforce a schema reject them; `buildAnswerShape` has them. */
const looseSchema = {
  type: 'object',
  properties: {
    entries: {
      type: 'array',
      items: {
        type: 'object',
        properties: { text: { type: 'string' }, importance: { type: 'integer' } },
        required: ['text', 'importance'],
        additionalProperties: false,
      },
    },
  },
  required: ['entries'],
  additionalProperties: false,
}

/**
 * Has a model write the reflections of a batch, by the contract of the batch. An invalid answer is sent
 * back to the model with the fault, at most twice.
 *
 * @throws Refusal `invalid` when the third answer is invalid too; `upstream` when the model does not
 *   answer.
 */
export async function reflect(
  model: ChatModel,
  batch: Batch,
  signal: AbortSignal,
): Promise<ReflectionOutput> {
  const answerShape = buildAnswerShape(batch)
  const turns: ChatTurn[] = [
    { role: 'system', content: batch.reflection_contract.instructions },
    { role: 'user', content: batch.memories.map(memory => JSON.stringify(memory)).join('\n') },
  ]
  const usage = { inputTokens: 0, outputTokens: 0 }
  for (let attempt = 1; ; attempt++) {
    const answer = await model.answerJson(turns, looseSchema, signal)
    usage.inputTokens += answer.inputTokens
    usage.outputTokens += answer.outputTokens
    try {
      return { entries: parseEntries(answer.text, answerShape), attempts: attempt, ...usage }
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      if (attempt === attemptsMax) {
        throw new Refusal(
          'invalid',
          `${model.model} gave no usable answer in ${attemptsMax} tries: ${error.message}`,
          'Try another model, or smaller batches with --max-tokens',
        )
      }
      turns.push(
        { role: 'assistant', content: answer.text || '(nothing)' },
        {
          role: 'user',
          content: `That cannot be used: ${error.message}. Answer again with the complete JSON object and nothing else.`,
        },
      )
    }
  }
}

type ModelAnswer = { entries: CommitEntry[] }

/** Builds the shape of an answer from the contract of the batch. Additional fields are allowed. */
function buildAnswerShape({ reflection_contract: contract }: Batch): Shape<ModelAnswer> {
  const { text, importance } = contract.entry_schema
  return shape<ModelAnswer>(
    {
      type: 'object',
      required: ['entries'],
      properties: {
        entries: {
          type: 'array',
          minItems: contract.min_entries,
          maxItems: contract.max_entries,
          items: {
            type: 'object',
            required: ['text', 'importance'],
            properties: {
              text: { type: 'string', minLength: text.minLength, maxLength: text.maxLength },
              importance: {
                type: 'integer',
                minimum: importance.minimum,
                maximum: importance.maximum,
              },
            },
          },
        },
      },
    },
    { name: 'the answer' },
  )
}

function parseEntries(answer: string, answerShape: Shape<ModelAnswer>): CommitEntry[] {
  const value = extractJson(answer)
  const { entries } = answerShape.check(Array.isArray(value) ? { entries: value } : value)
  requireStandaloneProse(entries)
  return entries.map(({ text, importance }) => ({ text: text.trim(), importance }))
}

/** Extracts the JSON of an answer, which may be in a code fence, between sentences or after `<think>` text. */
function extractJson(answer: string): unknown {
  const text = answer.replace(/<think>[\s\S]*?<\/think>/g, '')
  const start = text.search(/[{[]/)
  const end = Math.max(text.lastIndexOf('}'), text.lastIndexOf(']'))
  try {
    return JSON.parse(text.slice(Math.max(0, start), end + 1))
  } catch {
    throw new Refusal('invalid', 'the answer is not JSON')
  }
}
