import type { SharedMemory } from '#shared/org/shared-memories.mongo.ts'
import { askOnce, useless, type Asking } from '#shared/org/pipeline/ask.ts'
import type { Near } from '#shared/org/pipeline/near.ts'
import { reconcileInstructions } from '#shared/org/pipeline/prompts.ts'
import type { OrgPolicy } from '#shared/org/org-policy.postgres.ts'
import type { Decision, TaggedFact, TurnRow } from '#shared/org/org-turns.postgres.ts'
import { shape, type Schema } from '#shared/core/shape.ts'

const textMax = 4_000

type Compared = Near & { turn: TurnRow; policy: OrgPolicy; facts: readonly TaggedFact[] }

/** Of one fact; the memory is one that was shown, or null. */
export type Answer = { action: Decision['action']; mem_id: string | null; text: string }

/**
 * What a model says about facts and the memories near them, in the order of the facts; nothing where
 * nothing is near any of them. It can name no memory but those.
 *
 * @throws Refusal as `askOnce`.
 */
export async function compare(
  backend: Asking,
  { turn, policy, facts, memories, near }: Compared,
  signal: AbortSignal,
): Promise<Answer[]> {
  if (memories.length === 0) return []
  const nearby = (fact: number) => near[fact]!.map(memory => nameOf(memories.indexOf(memory)))
  const material = {
    facts: facts.map(({ text }, fact) => ({ fact, text, near: nearby(fact) })),
    memories: memories.map(({ text }, index) => ({ memory: nameOf(index), text })),
  }
  return askOnce(
    backend,
    { turn, policy },
    {
      pass: 'reconcile',
      kind: 'org-reconcile',
      model: policy.extractModel,
      instructions: reconcileInstructions,
      material: JSON.stringify(material),
      schema: schemaOf({}),
      shape: answerShape,
      keep: ({ decisions }) => inOrder(decisions, facts.length, memories),
    },
    signal,
  )
}

/** @throws Refusal `upstream` unless every fact is decided about once. */
function inOrder(
  decisions: readonly Said[],
  count: number,
  memories: readonly SharedMemory[],
): Answer[] {
  const rows = new Map(decisions.map(decision => [decision.fact, decision]))
  return Array.from({ length: count }, (_, index) => {
    const said = rows.get(index)
    if (!said || decisions.length !== count) throw useless('not every fact is in it once')
    const memory = memories.find((_memory, at) => said.memory === nameOf(at))
    return { action: said.action, mem_id: memory?.id ?? null, text: said.text }
  })
}

/** Models mistake a character of a UUID; and of an id they were not shown they cannot make one up. */
const nameOf = (index: number): string => `m${index + 1}`

type Said = { fact: number; action: Decision['action']; memory: string; text: string }

const schemaOf = (text: Schema): Schema => ({
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

const answerShape = shape<{ decisions: Said[] }>(schemaOf({ maxLength: textMax }), {
  name: 'the answer',
})
