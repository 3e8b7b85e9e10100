import {
  cachedCompletion,
  unusableAnswer,
  type CompletionBackend,
} from '#shared/org/pipeline/cached-completion.ts'
import type { BatchFact } from '#shared/org/pipeline/batch-facts.ts'
import type { NearMemory, NearbyMemories } from '#shared/org/pipeline/nearest-shared.ts'
import type { ComparisonAnswer, JudgedFacts } from '#shared/org/pipeline/judged-facts.ts'
import { reconcileInstructions } from '#shared/org/pipeline/prompts.ts'
import type { OrgPolicy } from '#shared/org/base/org-policy.postgres.ts'
import type { Decision, TurnRow } from '#shared/org/base/org-turns.postgres.ts'
import { shape, type Schema } from '#shared/core/shape.ts'

const textMax = 4_000

export type ComparisonInput = NearbyMemories & {
  /** The turn that the answer is stored under. */
  leader: TurnRow
  policy: OrgPolicy
  facts: readonly BatchFact[]
  /** The organization's large model, when missing. */
  model?: string
  /** An answer that is not stored is not asked for. */
  storedOnly?: boolean | undefined
  /** Where answers are kept while their turns wait. */
  judged?: JudgedFacts | undefined
  /** A fact whose answer there still holds is not asked about. */
  usesJudged?: boolean | undefined
}

/**
 * The decisions of a model about facts and the memories near them, in the order of the facts; none where
 * no fact has a memory near it. The model can name only those memories. A fact has several answers where it
 * changes several memories. One that a memory near it says in the same words is not asked about.
 *
 * @throws Refusal as `cachedCompletion`.
 */
export async function compareFacts(
  backend: CompletionBackend,
  input: ComparisonInput,
  signal: AbortSignal,
): Promise<ComparisonAnswer[][]> {
  const { facts, near, judged, usesJudged } = input
  const answers = facts.map((fact, index): ComparisonAnswer[] => {
    const { text, tags } = fact
    const same = near[index]!.filter(memory => isSameText(memory.text, text)).toSorted(
      (a, b) => outside(a.tags, tags) - outside(b.tags, tags),
    )[0]
    if (same) return [{ action: 'NONE', mem_id: same.id, text: '' }]
    return (usesJudged && judged?.find(fact, near[index]!)) || []
  })
  const asked = facts.flatMap((_, index) =>
    answers[index]!.length === 0 && near[index]!.length > 0 ? [index] : [],
  )
  if (asked.length === 0) return answers
  const pick = <Item>(list: readonly Item[]): Item[] => asked.map(index => list[index]!)
  const nearAsked = pick(near)
  const memories = [...new Set(nearAsked.flat())]
  const found = await askAbout(
    backend,
    { ...input, facts: pick(facts), near: nearAsked, memories },
    signal,
  )
  for (const [at, index] of asked.entries()) {
    answers[index] = found[at]!
    judged?.record(facts[index]!, { near: near[index]!, answers: found[at]! })
  }
  return answers
}

/** How many tags of a memory a fact has not. */
const outside = (tags: readonly string[], known: readonly string[]): number =>
  tags.filter(tag => !known.includes(tag)).length

const isSameText = (one: string, other: string): boolean =>
  one.replaceAll(/\s+/g, ' ').trim() === other.replaceAll(/\s+/g, ' ').trim()

async function askAbout(
  backend: CompletionBackend,
  { leader, policy, facts, memories, near, model, storedOnly }: ComparisonInput,
  signal: AbortSignal,
): Promise<ComparisonAnswer[][]> {
  const nearby = (fact: number) => near[fact]!.map(memory => memoryLabel(memories.indexOf(memory)))
  const lastDay = dayOf(leader.saidAt.getTime())
  const material = {
    member: leader.author,
    said_on: lastDay,
    facts: facts.map(({ text, turn }, fact) => {
      const day = dayOf(turn.saidAt.getTime())
      return { fact, ...(day !== lastDay && { said_on: day }), text, near: nearby(fact) }
    }),
    memories: memories.map(({ text, author, acquiredAt }, index) => ({
      memory: memoryLabel(index),
      text,
      member: author,
      said_on: dayOf(acquiredAt),
    })),
  }
  return cachedCompletion(
    backend,
    { turn: leader, policy },
    {
      pass: 'reconcile',
      kind: 'org-reconcile',
      model: model ?? policy.extractModel,
      instructions: reconcileInstructions,
      userPrompt: JSON.stringify(material),
      schema: decisionsSchema({}),
      shape: answerShape,
      extractResult: ({ decisions }) => orderAnswers(decisions, facts.length, memories),
      storedOnly,
    },
    signal,
  )
}

/** `YYYY-MM-DD`, UTC. */
const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10)

/** @throws Refusal `upstream` unless every fact is decided about once, or by updates of several memories. */
function orderAnswers(
  decisions: readonly ModelDecision[],
  count: number,
  memories: readonly NearMemory[],
): ComparisonAnswer[][] {
  if (decisions.some(({ fact }) => fact < 0 || fact >= count)) throw notEveryFact()
  return Array.from({ length: count }, (_, index) => {
    const answers = decisions
      .filter(({ fact }) => fact === index)
      .map(({ action, memory: label, text }) => {
        const memory = memories.find((_memory, at) => label === memoryLabel(at))
        return { action, mem_id: memory?.id ?? null, text }
      })
    const named = new Set(answers.map(({ mem_id }) => mem_id))
    const areUpdates = answers.every(({ action }) => action === 'UPDATE')
    if (answers.length === 1 || (answers.length > 1 && areUpdates && named.size === answers.length))
      return answers
    throw notEveryFact()
  })
}

const notEveryFact = () => unusableAnswer('not every fact is in it once')

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
