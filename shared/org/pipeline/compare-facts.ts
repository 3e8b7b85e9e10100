import type { SharedMemory } from '#shared/org/shared-memories.mongo.ts'
import {
  cachedCompletion,
  unusableAnswer,
  type CompletionBackend,
} from '#shared/org/pipeline/cached-completion.ts'
import type { NearbyMemories } from '#shared/org/pipeline/nearest-shared.ts'
import { reconcileInstructions } from '#shared/org/pipeline/prompts.ts'
import type { OrgPolicy } from '#shared/org/org-policy.postgres.ts'
import type { Decision, TaggedFact, TurnRow } from '#shared/org/org-turns.postgres.ts'
import { shape, type Schema } from '#shared/core/shape.ts'

const textMax = 4_000

type ComparisonInput = NearbyMemories & {
  turn: TurnRow
  policy: OrgPolicy
  facts: readonly TaggedFact[]
}

/** Of one fact; the memory is one that was shown, or null. */
export type ComparisonAnswer = { action: Decision['action']; mem_id: string | null; text: string }

/**
 * The decisions of a model about facts and the memories near them, in the order of the facts; none where
 * no fact has a memory near it. The model can name only those memories.
 *
 * @throws Refusal as `cachedCompletion`.
 */
export async function compareFacts(
  backend: CompletionBackend,
  { turn, policy, facts, memories, near }: ComparisonInput,
  signal: AbortSignal,
): Promise<ComparisonAnswer[]> {
  if (memories.length === 0) return []
  const nearby = (fact: number) => near[fact]!.map(memory => memoryLabel(memories.indexOf(memory)))
  const material = {
    facts: facts.map(({ text }, fact) => ({ fact, text, near: nearby(fact) })),
    memories: memories.map(({ text }, index) => ({ memory: memoryLabel(index), text })),
  }
  return cachedCompletion(
    backend,
    { turn, policy },
    {
      pass: 'reconcile',
      kind: 'org-reconcile',
      model: policy.extractModel,
      instructions: reconcileInstructions,
      userPrompt: JSON.stringify(material),
      schema: decisionsSchema({}),
      shape: answerShape,
      extractResult: ({ decisions }) => orderAnswers(decisions, facts.length, memories),
    },
    signal,
  )
}

/** @throws Refusal `upstream` unless every fact is decided about once. */
function orderAnswers(
  decisions: readonly ModelDecision[],
  count: number,
  memories: readonly SharedMemory[],
): ComparisonAnswer[] {
  const rows = new Map(decisions.map(decision => [decision.fact, decision]))
  return Array.from({ length: count }, (_, index) => {
    const answer = rows.get(index)
    if (!answer || decisions.length !== count) throw unusableAnswer('not every fact is in it once')
    const memory = memories.find((_memory, at) => answer.memory === memoryLabel(at))
    return { action: answer.action, mem_id: memory?.id ?? null, text: answer.text }
  })
}

/** Models mistake a character of a UUID; and of an id they were not shown they cannot make one up. */
const memoryLabel = (index: number): string => `m${index + 1}`

type ModelDecision = { fact: number; action: Decision['action']; memory: string; text: string }

const decisionsSchema = (text: Schema): Schema => ({
  type: 'object',
  required: ['decisions'],
  additionalProperties: false,
  properties: {
    decisions: {
      type: 'array',
      items: {
        type: 'object',
        required: ['fact', 'action', 'memory', 'text'],
        additionalProperties: false,
        properties: {
          fact: { type: 'integer' },
          action: { type: 'string', enum: ['ADD', 'UPDATE', 'NONE'] },
          memory: { type: 'string' },
          text: { type: 'string', ...text },
        },
      },
    },
  },
})

const answerShape = shape<{ decisions: ModelDecision[] }>(decisionsSchema({ maxLength: textMax }), {
  name: 'the answer',
})
