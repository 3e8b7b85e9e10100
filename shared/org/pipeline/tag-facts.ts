import { reviewThreshold } from '#shared/org/review-threshold.ts'
import {
  cachedCompletion,
  unusableAnswer,
  type CompletionBackend,
} from '#shared/org/pipeline/cached-completion.ts'
import { classifyInstructions } from '#shared/org/pipeline/prompts.ts'
import { truncateText } from '#shared/org/rule-matching.ts'
import { findOrgPolicy, type OrgPolicy, type TagQuestion } from '#shared/org/org-policy.postgres.ts'
import {
  findTurn,
  lockTurn,
  savePassResults,
  type Fact,
  type TaggedFact,
  type TurnRow,
} from '#shared/org/org-turns.postgres.ts'
import { shape, type Schema } from '#shared/core/shape.ts'
import type { OrgTurnJob } from '#shared/domain/job-payloads.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'

/** Questions and characters of one call; organizations with more tags get several. */
const questionsMax = 20
const charactersMax = 48_000
/** Of each tag. */
const samplesMax = 8
const sampleMax = 300

/**
 * The second pass: asks the question of every tag about every fact and stores the tags, in one transaction
 * with the job of the third pass. Safe to run any number of times; no call is made twice.
 *
 * @throws Refusal as `extractFacts`.
 */
export async function tagFacts(
  backend: CompletionBackend & { queue: Queue },
  job: OrgTurnJob,
  signal: AbortSignal,
): Promise<void> {
  const { postgres, queue } = backend
  const turn = await findTurn(postgres.query, job.turn)
  const policy = await findOrgPolicy(postgres.query, job.org)
  if (!turn?.pass1 || !policy || turn.pass2) return
  const likelihoods = await rateTags(backend, { turn, policy, facts: turn.pass1 }, signal)
  const pass2 = turn.pass1.map((fact, index) =>
    toTaggedFact(fact, policy.tags, likelihoods[index] ?? {}),
  )
  await postgres.transaction(async tx => {
    const locked = await lockTurn(tx, job.turn)
    if (!locked || locked.pass2) return
    await savePassResults(tx, job.turn, { pass2 })
    await queue.send(tx, 'org-reconcile', [{ id: job.turn, data: job, priority: 0, key: job.org }])
  })
}

/** How likely each tag applies, by its id. */
type TagLikelihoods = Record<string, number>

/**
 * A tag that may well apply counts as applying: until its review a doubtful fact is visible to fewer
 * people, never to more. The confidence is that of the least sure answer; without tags to
 * ask about, the extractor's.
 */
export function toTaggedFact(
  { text, confidence }: Pick<Fact, 'text' | 'confidence'>,
  tags: readonly Pick<TagQuestion, 'id' | 'label'>[],
  likelihoods: TagLikelihoods,
): TaggedFact {
  const answers = tags.map(tag => ({ ...tag, likelihood: likelihoods[tag.id] ?? 0.5 }))
  const applied = answers.filter(({ likelihood }) => likelihood > 1 - reviewThreshold)
  const sure = answers.map(({ likelihood }) => Math.max(likelihood, 1 - likelihood))
  return {
    text,
    tags: applied.map(({ label }) => label),
    tagIds: applied.map(({ id }) => id),
    confidence: sure.length === 0 ? confidence : Math.round(Math.min(...sure) * 1_000) / 1_000,
  }
}

/** Of each fact, in order. */
async function rateTags(
  backend: CompletionBackend,
  input: { turn: TurnRow; policy: OrgPolicy; facts: readonly Fact[] },
  signal: AbortSignal,
): Promise<TagLikelihoods[]> {
  const likelihoods: TagLikelihoods[] = input.facts.map(() => ({}))
  for (const questions of batchQuestions(input.policy.tags)) {
    const answers = await askQuestions(backend, input, questions, signal)
    for (const [index, answer] of answers.entries()) Object.assign(likelihoods[index]!, answer)
  }
  return likelihoods
}

async function askQuestions(
  backend: CompletionBackend,
  { turn, policy, facts }: { turn: TurnRow; policy: OrgPolicy; facts: readonly Fact[] },
  questions: readonly TagQuestion[],
  signal: AbortSignal,
): Promise<TagLikelihoods[]> {
  const names = questions.map((_, index) => `t${index + 1}`)
  return cachedCompletion(
    backend,
    { turn, policy },
    {
      pass: 'tag',
      kind: 'org-tag',
      model: policy.classifyModel,
      instructions: classifyInstructions,
      userPrompt: buildUserPrompt(facts, questions, names),
      schema: answerSchemaFor(numbersSchema(names)),
      shape: answerShape,
      extractResult: answer =>
        orderAnswers(answer, facts.length, names).map(row =>
          toTagLikelihoods(row, questions, names),
        ),
    },
    signal,
  )
}

type AnswersByName = Record<string, number>

const toTagLikelihoods = (
  answers: AnswersByName,
  questions: readonly TagQuestion[],
  names: readonly string[],
): TagLikelihoods =>
  Object.fromEntries(questions.map(({ id }, index) => [id, answers[names[index]!]!]))

const answerSchemaFor = (answers: Schema): Schema => ({
  type: 'object',
  required: ['facts'],
  additionalProperties: false,
  properties: {
    facts: {
      type: 'array',
      items: {
        type: 'object',
        required: ['fact', 'answers'],
        additionalProperties: false,
        properties: { fact: { type: 'integer' }, answers },
      },
    },
  },
})

const numbersSchema = (names: readonly string[]): Schema => ({
  type: 'object',
  required: [...names],
  additionalProperties: false,
  properties: Object.fromEntries(names.map(name => [name, { type: 'number' }])),
})

/** One schema for all questions: a compiled schema stays in memory for good. */
const answerShape = shape<{ facts: { fact: number; answers: AnswersByName }[] }>(
  answerSchemaFor({
    type: 'object',
    additionalProperties: { type: 'number', minimum: 0, maximum: 1 },
  }),
  { name: 'the answer' },
)

/** Every fact once, and every question: a missing tag would make a fact visible to all. */
function orderAnswers(
  { facts }: { facts: readonly { fact: number; answers: AnswersByName }[] },
  count: number,
  names: readonly string[],
): AnswersByName[] {
  const rows = new Map(facts.map(({ fact, answers }) => [fact, answers]))
  return Array.from({ length: count }, (_, index) => {
    const answers = rows.get(index)
    if (facts.length !== count || !answers) throw unusableAnswer('not every fact is in it once')
    // Answers to other questions belong to no tag of the organization.
    if (!names.every(name => Object.hasOwn(answers, name))) {
      throw unusableAnswer('not every question is answered')
    }
    return answers
  })
}

function buildUserPrompt(
  facts: readonly Fact[],
  questions: readonly TagQuestion[],
  names: readonly string[],
): string {
  return JSON.stringify({
    facts: facts.map(({ text }, fact) => ({ fact, text })),
    questions: questions.map((question, index) => ({
      id: names[index],
      ...toPromptQuestion(question),
    })),
  })
}

const toPromptQuestion = ({ label, question, examples, negatives }: TagQuestion) => ({
  tag: label,
  question,
  ...(examples.length > 0 && { yes: trimSamples(examples) }),
  ...(negatives.length > 0 && { no: trimSamples(negatives) }),
})

const trimSamples = (samples: readonly string[]): string[] =>
  samples.slice(0, samplesMax).map(sample => truncateText(sample, sampleMax))

/** The tags in as few calls as hold them. */
function batchQuestions(tags: readonly TagQuestion[]): TagQuestion[][] {
  const calls: TagQuestion[][] = []
  let room = 0
  for (const tag of tags) {
    const size = JSON.stringify(toPromptQuestion(tag)).length
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
