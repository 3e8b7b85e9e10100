import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '#shared/core/log.ts'
import type { Calibration, Embedder } from '#shared/domain/embedder.ts'
import {
  findCalibration,
  recordCalibration,
} from '#shared/models/calibration/calibrations.postgres.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'
import sentences from '#shared/models/calibration/sentences.json' with { type: 'json' }
import { tuned } from '#shared/search/tuned.ts'

/** The calibration of a model that is not measured yet; the texts of a vault correct it. */
export const unmeasuredCalibration: Calibration = tuned.unmeasured

/** Between two attempts to measure a model that does not answer. */
const retryMs = 60_000

/** Gives embedders the calibrations of their spaces. */
export class Calibrator {
  readonly #query: Query
  readonly #log: Log
  readonly #stopping = new AbortController()

  constructor({ query }: { query: Query }, log: Log) {
    this.#query = query
    this.#log = log
  }

  /**
   * Gives an embedder the calibration of its space. Without a stored one the model is measured in the background; no
   * request waits for that.
   */
  async calibrate(embedder: Embedder): Promise<Embedder> {
    let calibration = await findCalibration(this.#query, embedder.space).catch(() => undefined)
    if (!calibration) void this.#measure(embedder).then(measured => (calibration = measured))
    return {
      ...embedder,
      get calibration() {
        return calibration ?? unmeasuredCalibration
      },
    }
  }

  /** Ends the measurements. */
  stop(): void {
    this.#stopping.abort()
  }

  async #measure(embedder: Embedder): Promise<Calibration | undefined> {
    const { signal } = this.#stopping
    const { space } = embedder
    while (!signal.aborted) {
      try {
        const measured = await measureCalibration(embedder, signal)
        const calibration = await recordCalibration(this.#query, space, measured)
        this.#log.info({ space, calibration }, 'embeddings.calibrated')
        return calibration
      } catch {
        // The breaker of the model reports what is wrong with it.
        await delay(retryMs, undefined, { signal, ref: false }).catch(() => {})
      }
    }
    return undefined
  }
}

type Language = readonly (readonly [statement: string, question: string, sameMeaning: string])[]

const languages = Object.values(sentences) as unknown as readonly Language[]

/** In a call, which must be answered within seconds: a model on a busy processor takes some 50 to 500 ms for each. */
const queriesMax = 6

const { unrelatedShare, sameShare, knownDistance, rangeMin, floorMin, floorMax } = tuned.calibration
const scripts = ['Latn', 'Cyrl', 'Han', 'Hira', 'Arab', 'Deva'] as const

/**
 * Measures the distribution of an embedder's cosines within each of nine languages, over 72 statements, each with a
 * question that it answers and a statement of the same meaning: some 3,500 tokens in 13 calls.
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
  const questions: Float32Array[] = []
  for (let from = 0; from < all.length; from += queriesMax) {
    const asked = all.slice(from, from + queriesMax).map(([, question]) => question)
    questions.push(...(await embedder.embedQueries(asked, signal)))
  }
  let next = 0
  const measured = languages.map(({ length }) => {
    const first = next
    next += length
    return comparePairs(questions.slice(first, next), statements.slice(2 * first, 2 * next))
  })
  const known = measured.filter(isKnown)
  const pairs = known.length > 0 ? known : measured
  // Those of each language on the scale of the one whose unrelated texts are furthest apart: a vault moves it back.
  const medians = pairs.map(one => quantile(one.unrelated, 0.5))
  const typical = Math.min(...medians)
  const pooled = (kind: keyof Pairs): number[] =>
    pairs.flatMap((one, i) => {
      const shift = (medians[i]! - typical) / (1 - typical)
      return one[kind].map(cosine => (cosine - shift) / (1 - shift))
    })
  const unrelated = quantile(pooled('unrelated'), unrelatedShare)
  const same = Math.max(quantile(pooled('same'), sameShare), unrelated + rangeMin * (1 - unrelated))
  const answer = (quantile(pooled('answers'), 0.5) - unrelated) / (same - unrelated)
  return {
    unrelated,
    same,
    floor: Math.min(Math.max(answer, floorMin), floorMax),
    typical,
    certain: Math.max(...measured.map(one => quantile(one.unrelated, unrelatedShare))),
    ...(known.length > 0 && { unknownScripts: unknownScripts(measured.map(isKnown)) }),
  }
}

const isKnown = ({ answers, unrelated }: Pairs): boolean => {
  const middle = quantile(unrelated, 0.5)
  const reach = quantile(unrelated, unrelatedShare) - middle
  return quantile(answers, 0.5) - middle > knownDistance * reach
}

/** The scripts in which the model knows no language. */
function unknownScripts(isKnownLanguage: readonly boolean[]): string[] {
  const isIn = (script: string, wanted: boolean): boolean =>
    languages.some(
      ([row], at) =>
        isKnownLanguage[at] === wanted && new RegExp(`\\p{sc=${script}}`, 'u').test(row![1]),
    )
  return scripts.filter(script => isIn(script, false) && !isIn(script, true))
}

type Pairs = {
  /** Similarities of questions and statements about something else. */
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

/** The cosine of unit vectors. */
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
