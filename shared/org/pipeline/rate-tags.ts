import { cachedCompletion, type CompletionBackend } from '#shared/org/pipeline/cached-completion.ts'
import { classifyInstructions } from '#shared/org/pipeline/prompts.ts'
import {
  orderLikelihoods,
  questionLength,
  tagAnswerSchema,
  tagAnswerShape,
  tagPrompt,
} from '#shared/org/pipeline/tag-prompt.ts'
import type { OrgPolicy, TagQuestion } from '#shared/org/base/org-policy.postgres.ts'
import type { Fact, TurnRow } from '#shared/org/base/org-turns.postgres.ts'

/** Questions, their characters, and facts of one call; where there are more there are several calls. */
const questionsMax = 20
const charactersMax = 48_000
const factsMax = 60

/** A fact with the number of its turn in the batch. */
type TurnFact = Fact & { turn: number }

/** How likely each tag applies, by its id. */
export type TagLikelihoods = Record<string, number>

/** Of each fact, in order. */
export async function rateTags(
  backend: CompletionBackend,
  input: { turn: TurnRow; policy: OrgPolicy; facts: readonly TurnFact[] },
  signal: AbortSignal,
): Promise<TagLikelihoods[]> {
  const likelihoods: TagLikelihoods[] = input.facts.map(() => ({}))
  for (let from = 0; from < input.facts.length; from += factsMax) {
    const facts = input.facts.slice(from, from + factsMax)
    for (const questions of batchQuestions(input.policy.tags)) {
      const answers = await askQuestions(backend, { ...input, facts }, questions, signal)
      for (const [index, answer] of answers.entries()) {
        Object.assign(likelihoods[from + index]!, answer)
      }
    }
  }
  return likelihoods
}

async function askQuestions(
  backend: CompletionBackend,
  { turn, policy, facts }: { turn: TurnRow; policy: OrgPolicy; facts: readonly TurnFact[] },
  questions: readonly TagQuestion[],
  signal: AbortSignal,
): Promise<TagLikelihoods[]> {
  return cachedCompletion(
    backend,
    { turn, policy },
    {
      pass: 'tag',
      kind: 'org-tag',
      model: policy.classifyModel,
      instructions: classifyInstructions,
      ...tagPrompt(questions, { member: turn.author, facts: numberFacts(facts) }),
      schema: tagAnswerSchema(questions.length),
      shape: tagAnswerShape,
      extractResult: answer => {
        const count = { facts: facts.length, questions: questions.length }
        return orderLikelihoods(answer, count).map(row =>
          Object.fromEntries(questions.map(({ id }, index) => [id, row[index]!])),
        )
      },
    },
    signal,
  )
}

/** Facts of the same turn help to understand each other. */
function numberFacts(facts: readonly TurnFact[]): { fact: number; text: string }[] {
  const isOfSeveral = facts.some(({ turn }) => turn !== facts[0]!.turn)
  return facts.map(({ text, turn }, fact) => ({ fact, ...(isOfSeveral && { turn }), text }))
}

/** The tags in as few calls as hold them. */
function batchQuestions(tags: readonly TagQuestion[]): TagQuestion[][] {
  const calls: TagQuestion[][] = []
  let room = 0
  for (const tag of tags) {
    const size = questionLength(tag)
    const call = calls.at(-1)
    if (call && call.length < questionsMax && size <= room) call.push(tag)
    else {
      calls.push([tag])
      room = charactersMax
    }
    room -= size
  }
  return calls
}
