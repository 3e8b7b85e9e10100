import type { Batch, Entry } from '#scripts/consolidate/vault.ts'
import { Refusal } from '#shared/core/errors.ts'
import type { ChatModel, ChatTurn } from '#shared/models/openai-chat.ts'
import { shape, type Shape } from '#shared/core/shape.ts'

export type Reflected = {
  entries: Entry[]
  /** How often the model was asked. */
  tries: number
  inputTokens: number
  outputTokens: number
}

const triesMax = 3

/** Providers that are held to a schema take no bounds in it; those are checked here. */
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
 * Has a model write the reflections of a batch, by the batch's own contract. An answer that does not fit
 * is sent back with what is wrong with it, twice.
 *
 * @throws Refusal `invalid` when the third answer does not fit either, `upstream` when the model does
 *   not answer.
 */
export async function reflect(
  model: ChatModel,
  batch: Batch,
  signal: AbortSignal,
): Promise<Reflected> {
  const fits = shapeOf(batch)
  const turns: ChatTurn[] = [
    { role: 'system', content: batch.reflection_contract.instructions },
    { role: 'user', content: batch.memories.map(memory => JSON.stringify(memory)).join('\n') },
  ]
  const sum = { inputTokens: 0, outputTokens: 0 }
  for (let tries = 1; ; tries++) {
    const answer = await model.answerJson(turns, looseSchema, signal)
    sum.inputTokens += answer.inputTokens
    sum.outputTokens += answer.outputTokens
    try {
      return { entries: entriesIn(answer.text, fits), tries, ...sum }
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      if (tries === triesMax) {
        throw new Refusal(
          'invalid',
          `${model.model} gave no usable answer in ${triesMax} tries: ${error.message}`,
          'Try another model, or smaller batches with --max-tokens',
        )
      }
      turns.push(
        { role: 'assistant', content: answer.text || '(nothing)' },
        {
          role: 'user',
          content: `That cannot be used: ${error.message}. Answer again with the whole JSON object and nothing else.`,
        },
      )
    }
  }
}

type Written = { entries: Entry[] }

/** What the batch's contract asks of an answer; fields a model adds of its own are not held against it. */
function shapeOf({ reflection_contract: contract }: Batch): Shape<Written> {
  const { text, importance } = contract.entry_schema
  return shape<Written>(
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

function entriesIn(answer: string, fits: Shape<Written>): Entry[] {
  const value = jsonIn(answer)
  const { entries } = fits.check(Array.isArray(value) ? { entries: value } : value)
  return entries.map(({ text, importance }, index) => {
    if (text.trim() === '') throw new Refusal('invalid', `entries[${index}].text holds no words`)
    return { text: text.trim(), importance }
  })
}

/** The JSON of an answer that may stand in a fence, between polite words, or behind spoken thoughts. */
function jsonIn(answer: string): unknown {
  const said = answer.replace(/<think>[\s\S]*?<\/think>/g, '')
  const start = said.search(/[{[]/)
  const end = Math.max(said.lastIndexOf('}'), said.lastIndexOf(']'))
  try {
    return JSON.parse(said.slice(Math.max(0, start), end + 1))
  } catch {
    throw new Refusal('invalid', 'the answer is not JSON')
  }
}
