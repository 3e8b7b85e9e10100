import type { Calibration, Embedder } from '#shared/domain/embedder.ts'
import sentences from '#shared/models/calibration/sentences.json' with { type: 'json' }

/** Raised with every change of the sentences or of what is computed from them. */
export const calibrationVersion = 1

type Language = readonly (readonly [statement: string, question: string, sameMeaning: string])[]

const languages = Object.values(sentences) as unknown as readonly Language[]

/** Share of unrelated pairs below the cosine that scores 0. */
const unrelatedShare = 0.98
/** Share of pairs of the same meaning below the cosine that scores 1. */
const sameShare = 0.75
/** A language whose questions are not nearer to their answers than so many of its unrelated pairs is unknown to the model. */
const knownShare = 0.9
/** Least part of the way from `unrelated` to 1 at which `same` lies: a model may find no meaning at all. */
const rangeMin = 0.2
/** `floor` of a model whose questions are hardly nearer to their answers than to anything else, and of one that finds most. */
const floorRange = [0.35, 0.6] as const

/**
 * Measures how an embedder's cosines are spread: 72 statements in nine languages, for each a question that it
 * answers and a statement of the same meaning, are compared within each language. 216 texts, some 3,500 tokens,
 * in two calls of the embedder.
 *
 * @throws Refusal `upstream` when the provider does not answer.
 */
export async function measureCalibration(
  embedder: Pick<Embedder, 'embedTexts' | 'embedQueries'>,
  signal?: AbortSignal,
): Promise<Calibration> {
  const all = languages.flat()
  const statements = await embedder.embedTexts(
    all.flatMap(([statement, , same]) => [statement, same]),
    signal,
  )
  const questions = await embedder.embedQueries(
    all.map(([, question]) => question),
    signal,
  )
  let next = 0
  const measured = languages.map(({ length }) => {
    const first = next
    next += length
    return comparePairs(questions.slice(first, next), statements.slice(2 * first, 2 * next))
  })
  const known = measured.filter(
    ({ answers, unrelated }) => quantile(answers, 0.5) > quantile(unrelated, knownShare),
  )
  const pairs = known.length > 0 ? known : measured
  const pooled = (kind: keyof Pairs): number[] => pairs.flatMap(one => one[kind])
  const unrelated = quantile(pooled('unrelated'), unrelatedShare)
  const same = Math.max(quantile(pooled('same'), sameShare), unrelated + rangeMin * (1 - unrelated))
  const answer = (quantile(pooled('answers'), 0.5) - unrelated) / (same - unrelated)
  return {
    unrelated,
    same,
    floor: Math.min(Math.max(answer, floorRange[0]), floorRange[1]),
    typical: quantile(pooled('unrelated'), 0.5),
    certain: Math.max(...measured.map(one => quantile(one.unrelated, unrelatedShare))),
  }
}

/** Cosines of the pairs of a language. */
type Pairs = {
  /** Of a question and statements about something else. */
  unrelated: number[]
  answers: number[]
  same: number[]
}

/** @param statements for each question two, both of which answer it */
function comparePairs(
  questions: readonly Float32Array[],
  statements: readonly Float32Array[],
): Pairs {
  const pairs: Pairs = { unrelated: [], answers: [], same: [] }
  for (const [i, question] of questions.entries()) {
    pairs.same.push(cosine(statements[2 * i]!, statements[2 * i + 1]!))
    for (const [j, statement] of statements.entries()) {
      const isAnswer = j >> 1 === i
      if (!isAnswer) pairs.unrelated.push(cosine(question, statement))
      else if (j % 2 === 0) pairs.answers.push(cosine(question, statement))
    }
  }
  return pairs
}

/** Of unit vectors. */
function cosine(one: Float32Array, other: Float32Array): number {
  let sum = 0
  for (let i = 0; i < one.length; i++) sum += one[i]! * other[i]!
  return sum
}

/** The value below which a share of some values lies; 0 of none. */
function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0
}
