import { reviewThreshold } from '#shared/org/memories/shared-memories.mongo.ts'
import {
  cachedCompletions,
  type AskModel,
  type CompletionBackend,
  type TurnAuthor,
} from '#shared/org/pipeline/cached-completion.ts'
import {
  findOrgPolicy,
  type TagQuestion,
  type OrgPolicy,
} from '#shared/org/base/org-policy.postgres.ts'
import {
  findTurnBatch,
  lockTurn,
  savePassResults,
  type Fact,
  type TaggedFact,
} from '#shared/org/base/org-turns.postgres.ts'
import type { OrgTurnJob } from '#shared/domain/job-payloads.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'
import { classifyInstructions } from '#shared/org/pipeline/prompts.ts'
import {
  orderLikelihoods,
  questionLength,
  tagAnswerSchema,
  tagAnswerShape,
  tagPrompt,
} from '#shared/org/pipeline/tag-prompt.ts'

/**
 * Runs the second pass: asks every tag about every fact of a turn and of its batch and stores the tags, in one
 * transaction with the job of the third pass. Safe to run any number of times; no call is made twice.
 *
 * @throws Refusal as `extractFacts`.
 */
export async function tagFacts(
  backend: CompletionBackend & { queue: Queue },
  job: OrgTurnJob,
  signal: AbortSignal,
): Promise<void> {
  const { postgres, queue } = backend
  const policy = await findOrgPolicy(postgres.query, job.org)
  const batch = await findTurnBatch(postgres.query, job.turn)
  const turns = batch.filter(turn => turn.pass1 && !turn.pass2)
  const leader = turns.find(({ id }) => id === job.turn) ?? turns[0]
  if (!leader || !policy) return
  const facts = turns.flatMap(({ pass1 }, turn) => pass1!.map(fact => ({ ...fact, turn })))
  const likelihoods = await rateTags(
    cachedCompletions(backend),
    { turn: leader, policy, facts },
    signal,
  )
  const tagged = facts.map((fact, index) => ({
    turn: fact.turn,
    fact: toTaggedFact(fact, policy.tags, likelihoods[index] ?? {}),
  }))
  await postgres.transaction(async tx => {
    for (const [index, { id }] of turns.entries()) {
      const locked = await lockTurn(tx, id)
      if (!locked || locked.pass2) continue
      const pass2 = tagged.flatMap(({ turn, fact }) => (turn === index ? [fact] : []))
      await savePassResults(tx, id, { pass2 })
    }
    const next = { id: job.turn, data: job, priority: 0, key: job.turn, group: job.org }
    await queue.send(tx, 'org-reconcile', [next])
  })
}

type NamedTag = Pick<TagQuestion, 'id' | 'label'> & Partial<Pick<TagQuestion, 'former'>>

const namesOf = ({ label, former = [] }: NamedTag): string[] => [label, ...former]

/** A tag applies whose likelihood is above this: what may well apply counts. */
export const appliesMin = 1 - reviewThreshold

/** A likelihood above this is no clear no. */
const clearNoMax = 0.2

/**
 * Tags a fact. A tag that may well apply counts as applying: until its review a doubtful fact is visible to fewer
 * people, never to more. Inherited tags apply whatever the answers are. The confidence is the least of the
 * extractor's and of every answer.
 */
export function toTaggedFact(
  { text, confidence, inheritedTags = [] }: Pick<Fact, 'text' | 'confidence' | 'inheritedTags'>,
  tags: readonly NamedTag[],
  likelihoods: TagLikelihoods,
): TaggedFact {
  const answers = tags.map(tag => ({ ...tag, likelihood: likelihoods[tag.id] ?? 0.5 }))
  const isInherited = (tag: NamedTag) => namesOf(tag).some(name => inheritedTags.includes(name))
  const applied = answers.filter(tag => tag.likelihood > appliesMin || isInherited(tag))
  const sure = answers.map(({ likelihood }) => Math.max(likelihood, 1 - likelihood))
  // A label that no tag has any more still closes: then only roles with `*` see the fact.
  const labels = new Set(tags.flatMap(namesOf))
  const unknown = inheritedTags.filter(label => !labels.has(label))
  const isUnclear =
    applied.length + unknown.length === 0 &&
    answers.some(({ likelihood }) => likelihood > clearNoMax)
  return {
    text,
    tags: [...applied.map(({ label }) => label), ...unknown],
    tagIds: [...applied.map(({ id }) => id), ...unknown],
    confidence: Math.round(Math.min(confidence, ...sure) * 1_000) / 1_000,
    ...(isUnclear && { unclear: true }),
  }
}

/** The most questions, their characters, and facts of one call. */
const questionsMax = 20
const charactersMax = 48_000
const factsMax = 60

type TurnFact = Fact & { turn: number }

/** By the id of the tag. */
export type TagLikelihoods = Record<string, number>

/** Asks a model how likely each tag applies to each fact, in order. */
export async function rateTags(
  ask: AskModel,
  input: { turn: TurnAuthor; policy: OrgPolicy; facts: readonly TurnFact[] },
  signal: AbortSignal,
): Promise<TagLikelihoods[]> {
  const likelihoods: TagLikelihoods[] = input.facts.map(() => ({}))
  for (let from = 0; from < input.facts.length; from += factsMax) {
    const facts = input.facts.slice(from, from + factsMax)
    for (const questions of batchQuestions(input.policy.tags)) {
      const answers = await askQuestions(ask, { ...input, facts }, questions, signal)
      for (const [index, answer] of answers.entries()) {
        Object.assign(likelihoods[from + index]!, answer)
      }
    }
  }
  return likelihoods
}

async function askQuestions(
  ask: AskModel,
  { turn, policy, facts }: { turn: TurnAuthor; policy: OrgPolicy; facts: readonly TurnFact[] },
  questions: readonly TagQuestion[],
  signal: AbortSignal,
): Promise<TagLikelihoods[]> {
  return ask(
    { turn, policy },
    {
      pass: 'tag',
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

/** Divides the tags into as few calls as hold them. */
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
