import { Refusal } from '#shared/core/errors.ts'
import { shape, type Schema } from '#shared/core/shape.ts'
import { unusableAnswer } from '#shared/org/pipeline/cached-completion.ts'
import { rowsSchema } from '#shared/org/pipeline/prompts.ts'
import { truncateText } from '#shared/org/base/rule-matching.ts'
import type { TagRow } from '#shared/org/base/tags.postgres.ts'

/*
 * The questions of tags about facts, and the answers: for a member's facts, and for a tag that is applied to stored
 * memories.
 */

/** The most examples of a tag, and characters of each. */
const samplesMax = 8
const sampleMax = 300

export type TagQuestion = Pick<TagRow, 'label' | 'question' | 'examples' | 'negatives'>

/** Short names, since models mistake characters of a UUID. */
const questionNames = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `t${index + 1}`)

/**
 * Builds the material of a call. It begins with what is the same for every fact, since providers charge a tenth for
 * a known prefix.
 *
 * @param material the facts, numbered from 0, and their member
 */
export function tagPrompt(
  questions: readonly TagQuestion[],
  material: { facts: readonly { fact: number; text: string }[]; member?: string },
): { userPrompt: string; prefixLength: number } {
  const names = questionNames(questions.length)
  const asked = questions.map((question, index) => ({
    id: names[index],
    ...toPromptQuestion(question),
  }))
  const prefix = `{"questions":${JSON.stringify(asked)},`
  return { userPrompt: prefix + JSON.stringify(material).slice(1), prefixLength: prefix.length }
}

/** Characters of a question in the prompt. */
export const questionLength = (question: TagQuestion): number =>
  JSON.stringify(toPromptQuestion(question)).length

const toPromptQuestion = ({ label, question, examples, negatives }: TagQuestion) => ({
  tag: label,
  question,
  ...(examples.length > 0 && { yes: trimSamples(examples) }),
  ...(negatives.length > 0 && { no: trimSamples(negatives) }),
})

const trimSamples = (samples: readonly string[]): string[] =>
  samples.slice(0, samplesMax).map(sample => truncateText(sample, sampleMax))

/** The schema of the likelihoods of so many questions for each fact. */
export const tagAnswerSchema = (questions: number): Schema => {
  const names = questionNames(questions)
  return answersSchema({
    type: 'object',
    required: names,
    additionalProperties: false,
    properties: Object.fromEntries(names.map(name => [name, { type: 'number' }])),
  })
}

const answersSchema = (answers: Schema): Schema =>
  rowsSchema('facts', { fact: { type: 'integer' }, answers })

/** One shape for all questions: a compiled schema is never freed. */
export const tagAnswerShape = shape<{ facts: { fact: number; answers: Record<string, number> }[] }>(
  answersSchema({
    type: 'object',
    additionalProperties: { type: 'number', minimum: 0, maximum: 1 },
  }),
  { name: 'the answer' },
)

/**
 * Reads how likely each question applies to each fact, both in order. Every fact and every question must be
 * answered once: a missing tag would make a fact visible to all.
 *
 * @throws UnusableAnswer otherwise.
 */
export function orderLikelihoods(
  { facts }: { facts: { fact: number; answers: Record<string, number> }[] },
  count: { facts: number; questions: number },
): number[][] {
  const rows = new Map(facts.map(({ fact, answers }) => [fact, answers]))
  const names = questionNames(count.questions)
  return Array.from({ length: count.facts }, (_, fact) => {
    const answers = rows.get(fact)
    if (facts.length !== count.facts || !answers) {
      throw unusableAnswer('not every fact is in it once')
    }
    if (!names.every(name => Object.hasOwn(answers, name))) {
      throw unusableAnswer('not every question is answered')
    }
    return names.map(name => answers[name]!)
  })
}

/**
 * Reads how likely one question applies to each fact, in order.
 *
 * @throws UnusableAnswer as `orderLikelihoods`, and for an answer of another shape.
 */
export function readTagAnswer(answer: unknown, facts: number): number[] {
  try {
    const rows = orderLikelihoods(tagAnswerShape.check(answer), { facts, questions: 1 })
    return rows.map(([likelihood]) => likelihood!)
  } catch (error) {
    if (error instanceof Refusal && error.reason === 'invalid') {
      throw unusableAnswer('it is not of the shape that was asked for')
    }
    throw error
  }
}
