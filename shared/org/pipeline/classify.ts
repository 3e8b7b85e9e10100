import { askOnce, useless, type Asking } from '#shared/org/pipeline/ask.ts'
import { classifyInstructions } from '#shared/org/pipeline/prompts.ts'
import { shortenedTo } from '#shared/org/rules.ts'
import { policyOf, type OrgPolicy, type TagQuestion } from '#shared/org/org-policy.postgres.ts'
import {
  findTurn,
  holdTurn,
  writePasses,
  type Fact,
  type TaggedFact,
  type TurnRow,
} from '#shared/org/org-turns.postgres.ts'
import { shape, type Schema } from '#shared/core/shape.ts'
import type { OrgTurnJob } from '#shared/domain/job-payloads.ts'
import type { Queue } from '#shared/storage/queue/queue.ts'

/** Below this confidence a person looks at the tags. */
export const reviewThreshold = 0.6

/** Questions and characters of one call; organizations with more tags get several. */
const questionsMax = 20
const charactersMax = 48_000
/** Of each tag. */
const samplesMax = 8
const sampleMax = 300

/**
 * The second pass: asks the question of every tag about every fact, and leaves the tags for the third in
 * one transaction with its job. Safe to run any number of times; no call is made twice.
 *
 * @throws Refusal as `extractFacts`.
 */
export async function tagFacts(
  backend: Asking & { queue: Queue },
  job: OrgTurnJob,
  signal: AbortSignal,
): Promise<void> {
  const { postgres, queue } = backend
  const turn = await findTurn(postgres.query, job.turn)
  const policy = await policyOf(postgres.query, job.org)
  if (!turn?.pass1 || !policy || turn.pass2) return
  const likelihoods = await likelihoodsOf(backend, { turn, policy, facts: turn.pass1 }, signal)
  const pass2 = turn.pass1.map((fact, index) =>
    taggedOf(fact, policy.tags, likelihoods[index] ?? {}),
  )
  await postgres.transaction(async tx => {
    const held = await holdTurn(tx, job.turn)
    if (!held || held.pass2) return
    await writePasses(tx, job.turn, { pass2 })
    await queue.send(tx, 'org-reconcile', [{ id: job.turn, data: job, priority: 0, key: job.org }])
  })
}

/** How likely each tag applies, by its id. */
type Likelihoods = Record<string, number>

/**
 * A tag that may well apply counts as applying: a fact that somebody must look at first is shown to fewer
 * people meanwhile, never to more. The confidence is that of the least sure answer; without tags to
 * ask about, the extractor's.
 */
export function taggedOf(
  { text, confidence }: Pick<Fact, 'text' | 'confidence'>,
  tags: readonly Pick<TagQuestion, 'id' | 'label'>[],
  likelihoods: Likelihoods,
): TaggedFact {
  const answers = tags.map(tag => ({ ...tag, likelihood: likelihoods[tag.id] ?? 0.5 }))
  const given = answers.filter(({ likelihood }) => likelihood > 1 - reviewThreshold)
  const sure = answers.map(({ likelihood }) => Math.max(likelihood, 1 - likelihood))
  return {
    text,
    tags: given.map(({ label }) => label),
    tagIds: given.map(({ id }) => id),
    confidence: sure.length === 0 ? confidence : Math.round(Math.min(...sure) * 1_000) / 1_000,
  }
}

/** Of each fact, in order. */
async function likelihoodsOf(
  backend: Asking,
  asked: { turn: TurnRow; policy: OrgPolicy; facts: readonly Fact[] },
  signal: AbortSignal,
): Promise<Likelihoods[]> {
  const likelihoods: Likelihoods[] = asked.facts.map(() => ({}))
  for (const questions of inCalls(asked.policy.tags)) {
    const answers = await answersTo(backend, asked, questions, signal)
    for (const [index, answer] of answers.entries()) Object.assign(likelihoods[index]!, answer)
  }
  return likelihoods
}

async function answersTo(
  backend: Asking,
  { turn, policy, facts }: { turn: TurnRow; policy: OrgPolicy; facts: readonly Fact[] },
  questions: readonly TagQuestion[],
  signal: AbortSignal,
): Promise<Likelihoods[]> {
  const names = questions.map((_, index) => `t${index + 1}`)
  return askOnce(
    backend,
    { turn, policy },
    {
      pass: 'tag',
      kind: 'org-tag',
      model: policy.classifyModel,
      instructions: classifyInstructions,
      material: materialOf(facts, questions, names),
      schema: schemaOf(numbersOf(names)),
      shape: answerShape,
      keep: answer => inOrder(answer, facts.length, names).map(row => byId(row, questions, names)),
    },
    signal,
  )
}

type Answers = Record<string, number>

const byId = (
  answers: Answers,
  questions: readonly TagQuestion[],
  names: readonly string[],
): Likelihoods =>
  Object.fromEntries(questions.map(({ id }, index) => [id, answers[names[index]!]!]))

const schemaOf = (answers: Schema): Schema => ({
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

const numbersOf = (names: readonly string[]): Schema => ({
  type: 'object',
  required: [...names],
  additionalProperties: false,
  properties: Object.fromEntries(names.map(name => [name, { type: 'number' }])),
})

/** One for any questions: a compiled schema is kept for good. */
const answerShape = shape<{ facts: { fact: number; answers: Answers }[] }>(
  schemaOf({ type: 'object', additionalProperties: { type: 'number', minimum: 0, maximum: 1 } }),
  { name: 'the answer' },
)

/** Every fact once, and every question: a tag that is left out would show a fact to everybody. */
function inOrder(
  { facts }: { facts: readonly { fact: number; answers: Answers }[] },
  count: number,
  names: readonly string[],
): Answers[] {
  const rows = new Map(facts.map(({ fact, answers }) => [fact, answers]))
  return Array.from({ length: count }, (_, index) => {
    const answers = rows.get(index)
    if (facts.length !== count || !answers) throw useless('not every fact is in it once')
    // Questions that nobody asked are no tags of the organization.
    if (!names.every(name => Object.hasOwn(answers, name))) {
      throw useless('not every question is answered')
    }
    return answers
  })
}

function materialOf(
  facts: readonly Fact[],
  questions: readonly TagQuestion[],
  names: readonly string[],
): string {
  return JSON.stringify({
    facts: facts.map(({ text }, fact) => ({ fact, text })),
    questions: questions.map((question, index) => ({ id: names[index], ...askedOf(question) })),
  })
}

const askedOf = ({ label, question, examples, negatives }: TagQuestion) => ({
  tag: label,
  question,
  ...(examples.length > 0 && { yes: samplesOf(examples) }),
  ...(negatives.length > 0 && { no: samplesOf(negatives) }),
})

const samplesOf = (samples: readonly string[]): string[] =>
  samples.slice(0, samplesMax).map(sample => shortenedTo(sample, sampleMax))

/** The tags in as few calls as hold them. */
function inCalls(tags: readonly TagQuestion[]): TagQuestion[][] {
  const calls: TagQuestion[][] = []
  let room = 0
  for (const tag of tags) {
    const size = JSON.stringify(askedOf(tag)).length
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
