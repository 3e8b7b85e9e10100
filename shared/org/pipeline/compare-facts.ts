import {
  unusableAnswer,
  type AskModel,
  type TurnAuthor,
} from '#shared/org/pipeline/cached-completion.ts'
import type { BatchFact } from '#shared/org/pipeline/batch-facts.ts'
import type { NearMemory } from '#shared/org/pipeline/nearest-shared.ts'
import { dayOf, reconcileInstructions, rowsSchema } from '#shared/org/pipeline/prompts.ts'
import type { OrgPolicy } from '#shared/org/base/org-policy.postgres.ts'
import type { Decision } from '#shared/org/base/org-turns.postgres.ts'
import { shape, type Schema } from '#shared/core/shape.ts'
import { sharedStems, stemsOf } from '#shared/org/pipeline/text-words.ts'

const textMax = 4_000

/** A fact and the memories near it, nearest first. */
export type NearbyFact = { fact: BatchFact; near: readonly NearMemory[] }

/** What a model answered about it: nothing where no memory is near. */
export type FactAnswers = NearbyFact & { answers: readonly ComparisonAnswer[] }

/** How facts are compared, whichever they are. */
export type Comparison = {
  /** The turn that the answer is stored under. */
  leader: TurnAuthor
  policy: OrgPolicy
  /** The organization's large model, when missing. */
  model?: string
  /** Throws `AnswerMissing` in place of asking. */
  storedOnly?: boolean | undefined
  /** Keeps answers while their turns wait. */
  earlierAnswers?: JudgedFacts | undefined
  /** A fact is not asked about when its answer there still holds. */
  reusesAnswers?: boolean | undefined
}

/**
 * Asks a model about facts and the memories near them; it can name only those memories. A fact that a memory says
 * in the same words is not asked about.
 *
 * @returns the facts in order, each with its answers: none where no memory is near it, several where it changes
 *   several memories.
 *
 * @throws Refusal as the asked model.
 */
export async function compareFacts(
  ask: AskModel,
  comparison: Comparison,
  facts: readonly NearbyFact[],
  signal: AbortSignal,
): Promise<FactAnswers[]> {
  const { earlierAnswers } = comparison
  const allFacts = facts.map(item => ({ ...item, answers: answersWithoutModel(comparison, item) }))
  const factsToAsk = allFacts.filter(({ near, answers }) => answers.length === 0 && near.length > 0)
  if (factsToAsk.length === 0) return allFacts
  const replies = await askAbout(ask, comparison, factsToAsk, signal)
  for (const { fact, near, answers } of replies) earlierAnswers?.record(fact, { near, answers })
  const byModel = new Map(factsToAsk.map((item, at) => [item, replies[at]!]))
  return allFacts.map(item => byModel.get(item) ?? item)
}

/** The answer that a memory in the same words or an answer of before gives; empty: a model is to be asked. */
function answersWithoutModel(
  { earlierAnswers, reusesAnswers }: Comparison,
  { fact, near }: NearbyFact,
): ComparisonAnswer[] {
  const { text, tags } = fact
  const same = near
    .filter(memory => isSameText(memory.text, text))
    .toSorted((a, b) => outside(a.tags, tags) - outside(b.tags, tags))[0]
  if (same) return [{ action: 'NONE', mem_id: same.id, text: '' }]
  return (reusesAnswers && earlierAnswers?.find(fact, near)) || []
}

/** Counts the tags of a memory that a fact has not. */
const outside = (tags: readonly string[], known: readonly string[]): number =>
  tags.filter(tag => !known.includes(tag)).length

const isSameText = (one: string, other: string): boolean =>
  one.replaceAll(/\s+/g, ' ').trim() === other.replaceAll(/\s+/g, ' ').trim()

async function askAbout(
  ask: AskModel,
  { leader, policy, model, storedOnly }: Comparison,
  facts: readonly NearbyFact[],
  signal: AbortSignal,
): Promise<FactAnswers[]> {
  const memories = [...new Set(facts.flatMap(({ near }) => near))]
  const lastDay = dayOf(leader.saidAt.getTime())
  const material = {
    member: leader.author,
    said_on: lastDay,
    facts: facts.map(({ fact: { text, turn }, near }, fact) => {
      const day = dayOf(turn.saidAt.getTime())
      const labels = near.map(memory => memoryLabel(memories.indexOf(memory)))
      return { fact, ...(day !== lastDay && { said_on: day }), text, near: labels }
    }),
    memories: memories.map(({ text, author, acquiredAt }, index) => ({
      memory: memoryLabel(index),
      text,
      member: author,
      said_on: dayOf(acquiredAt),
    })),
  }
  const answers = await ask(
    { turn: leader, policy },
    {
      pass: 'reconcile',
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
  return facts.map((item, index) => ({ ...item, answers: answers[index]! }))
}

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
    const namedIds = new Set(answers.map(({ mem_id }) => mem_id))
    const areUpdates = answers.every(({ action }) => action === 'UPDATE')
    const areOfSeveral = answers.length > 1 && namedIds.size === answers.length
    if (answers.length === 1 || (areUpdates && areOfSeveral)) return answers
    throw notEveryFact()
  })
}

const notEveryFact = () => unusableAnswer('not every fact is in it once')

/** Short names, since models mistake characters of a UUID. */
const memoryLabel = (index: number): string => `m${index + 1}`

type ModelDecision = { fact: number; action: Decision['action']; memory: string; text: string }

const decisionsSchema = (text: Schema): Schema =>
  rowsSchema('decisions', {
    fact: { type: 'integer' },
    action: { type: 'string', enum: ['ADD', 'UPDATE', 'NONE'] },
    memory: { type: 'string' },
    text: { type: 'string', ...text },
  })

const answerShape = shape<{ decisions: ModelDecision[] }>(decisionsSchema({ maxLength: textMax }), {
  name: 'the answer',
})

/** An answer about one fact; the memory is one that was shown, or null. */
export type ComparisonAnswer = { action: Decision['action']; mem_id: string | null; text: string }

type Judgement = { near: readonly NearMemory[]; answers: readonly ComparisonAnswer[] }

/**
 * Keeps answers about the facts of turns that wait to be written. In a busy team another memory is near almost
 * every fact by then; asking again each time would make all turns wait for each other.
 *
 * An answer holds while the memories that it names are unchanged, and every new memory has no more in common with
 * the fact than one that the model has told apart from it: it shares no further word with the fact, and, with an
 * embedder that knows more than words, is no nearer to it. About one that shares no word the model is asked again: its
 * words cannot be told apart, as in Chinese, or it is near by its vector alone.
 */
export class JudgedFacts {
  readonly #judgements = new Map<string, Judgement>()
  readonly #knowsWordsOnly: boolean

  constructor({ knowsWordsOnly }: { knowsWordsOnly: boolean }) {
    this.#knowsWordsOnly = knowsWordsOnly
  }

  record(fact: BatchFact, judgement: Judgement): void {
    this.#judgements.set(keyOf(fact), judgement)
  }

  /** @param near the memories near the fact now, nearest first */
  find(fact: BatchFact, near: readonly NearMemory[]): ComparisonAnswer[] | undefined {
    const judgement = this.#judgements.get(keyOf(fact))
    if (!judgement) return undefined
    const namedIds = new Set(judgement.answers.map(({ mem_id: id }) => id))
    const memoriesThen = new Map(judgement.near.map(memory => [memory.id, memory]))
    const isAsItWas = ({ id, version, text }: NearMemory): boolean =>
      memoriesThen.get(id)?.version === version && memoriesThen.get(id)?.text === text
    const isNamedAsItWas = [...namedIds].every(
      id => id === null || near.some(m => m.id === id && isAsItWas(m)),
    )
    if (!isNamedAsItWas) return undefined
    const toldApart = judgement.near.filter(({ id }) => !namedIds.has(id))
    const holds = near.every(
      (memory, rank) =>
        isAsItWas(memory) ||
        toldApart.some(other =>
          this.#isNoNearer(
            fact,
            { memory, rank },
            { other, rankOfOther: near.findIndex(({ id }) => id === other.id) },
          ),
        ),
    )
    return holds ? [...judgement.answers] : undefined
  }

  /** Whether a memory has no more in common with a fact than another, whose rank is `-1` once it is not near. */
  #isNoNearer(
    fact: BatchFact,
    { memory, rank }: { memory: NearMemory; rank: number },
    { other, rankOfOther }: { other: NearMemory; rankOfOther: number },
  ): boolean {
    const words = stemsOf(fact.text)
    const commonStems = sharedStems(stemsOf(memory.text), words)
    const otherStems = new Set(sharedStems(stemsOf(other.text), words))
    const isFarther = this.#knowsWordsOnly || (rankOfOther >= 0 && rankOfOther < rank)
    return isFarther && commonStems.length > 0 && commonStems.every(stem => otherStems.has(stem))
  }
}

const keyOf = ({ turn, text }: BatchFact): string => `${turn.id} ${text}`
