import OpenAI from 'openai'
import type { Calibration, Embedder } from '#shared/domain/embedder.ts'
import { DimensionRefusal } from '#shared/models/dimension-refusal.ts'
import { weightedMeanVector, splitText, toUnitLength } from '#shared/models/split-text.ts'
import { Refusal } from '#shared/core/errors.ts'
import { timedFetch } from '#shared/core/timed-fetch.ts'

export type EmbeddingModelSettings = {
  /** Provider-prefixed, as clients name the model. */
  model: string
  /** As the provider names it. */
  name: string
  apiKey: string
  baseUrl: string
}

/** Inputs of one call; providers accept 2,048, smaller batches are cheaper to retry. */
const inputsMax = 256
/**
 * Of all inputs together: OpenAI accepts 300,000 tokens a call, and no token is shorter than a
 * byte.
 */
const bytesMax = 300_000
const deadlineMs = 20_000
/** A query is shorter than a batch: a client waits for it, and for the first call of all. */
const queryRetryPolicy = { timeout: 3_400, maxRetries: 1 }
const queryCharactersMax = 16_000

/**
 * Cosines at which unrelated texts end and equal ones begin, for the makers' models; every other
 * model gets cautious values.
 */
const calibrations: Record<string, Calibration> = {
  'text-embedding-3-small': { unrelated: 0.12, same: 0.85, floor: 0.16 },
  'text-embedding-3-large': { unrelated: 0.12, same: 0.85, floor: 0.16 },
  'text-embedding-ada-002': { unrelated: 0.72, same: 0.97, floor: 0.2 },
}
const defaultCalibration: Calibration = { unrelated: 0.2, same: 0.9, floor: 0.15 }

/**
 * Embeddings of any OpenAI-compatible endpoint. The first call shows the dimension. The vector of a
 * text beyond 8,000 bytes is the mean of the vectors of its parts, so that all of it counts.
 *
 * @throws Refusal `upstream` when the provider refuses, does not answer for 20 s, or answers with anything
 *   but vectors; DimensionRefusal for vectors of another dimension. The SDK retries rate limits and server errors (three times).
 */
export async function openProviderEmbedder(provider: EmbeddingModelSettings): Promise<Embedder> {
  const { model, name, apiKey, baseUrl } = provider
  const client = new OpenAI({
    apiKey: apiKey || 'none',
    baseURL: baseUrl,
    maxRetries: 3,
    timeout: deadlineMs,
    fetch: timedFetch(model.split('/')[0]!),
  })

  /** Of every vector, once the first answer has shown it. */
  let knownDimension: number | undefined
  const embed = async (
    texts: readonly string[],
    signal?: AbortSignal,
    retryPolicy: { timeout?: number; maxRetries?: number } = {},
  ): Promise<Float32Array[]> => {
    const chunksByText = texts.map(text => splitText(toNonEmptyInput(text)))
    const chunkVectors: Float32Array[] = []
    for (const input of splitIntoBatches(chunksByText.flat())) {
      const answer = await client.embeddings
        .create({ model: name, input }, { ...retryPolicy, ...(signal && { signal }) })
        .catch((error: Error) => throwUpstreamRefusal(model, error))
      const length = vectorLengthOf(answer, input.length)
      if (length === undefined)
        throwUpstreamRefusal(model, new Error('not the vectors of these inputs'))
      if (knownDimension !== undefined && length !== knownDimension)
        throw new DimensionRefusal(model, knownDimension, length, spaceName(model, length))
      const sortedVectors = answer.data.toSorted((one, other) => one.index - other.index)
      chunkVectors.push(
        ...sortedVectors.map(({ embedding }) => toUnitLength(Float32Array.from(embedding))),
      )
    }
    let next = 0
    return chunksByText.map(chunks =>
      weightedMeanVector(chunkVectors.slice(next, (next += chunks.length)), chunks),
    )
  }

  const embedQueries: Embedder['embedQueries'] = (texts, signal) => {
    const queries = texts.map(text => text.slice(0, queryCharactersMax))
    return embed(queries, signal, queryRetryPolicy)
  }

  const [probe] = await embed(['dimension'], undefined, queryRetryPolicy)
  const dimension = probe!.length
  knownDimension = dimension
  return {
    model,
    dimension,
    space: spaceName(model, dimension),
    calibration: calibrations[name] ?? defaultCalibration,
    embedTexts: (texts, signal) => embed(texts, signal),
    embedQuery: async (text, signal) => (await embedQueries([text], signal))[0]!,
    embedQueries,
  }
}

/**
 * The length of the vectors of an answer; undefined where it has not one vector for each input, all of the
 * same length. A proxy in between may answer 200 with a page of its own: any JSON, or none.
 */
function vectorLengthOf(answer: unknown, inputs: number): number | undefined {
  const { data } = (answer ?? {}) as { data?: unknown }
  if (!Array.isArray(data) || data.length !== inputs) return undefined
  const rows = data as ({ index?: unknown; embedding?: unknown } | null)[]
  const first = rows[0]?.embedding
  const length = Array.isArray(first) ? first.length : 0
  const isWhole = rows.every(row => {
    const { index, embedding } = row ?? {}
    return typeof index === 'number' && isVector(embedding) && embedding.length === length
  })
  return isWhole ? length : undefined
}

/** Whether it is numbers that a 32-bit float can hold. */
const isVector = (value: unknown): value is number[] =>
  Array.isArray(value) &&
  value.length > 0 &&
  value.every(part => typeof part === 'number' && Number.isFinite(Math.fround(part)))

/**
 * A name for field paths, unique by model and dimension: `/` is `__`, other characters `_` and hex.
 */
function spaceName(model: string, dimension: number): string {
  const escaped = model.replaceAll(/[^A-Za-z0-9-]/g, sign =>
    sign === '/' ? '__' : `_${sign.codePointAt(0)!.toString(16).padStart(2, '0')}`,
  )
  return `${escaped}-${dimension}`
}

/** Providers refuse an empty input. */
const toNonEmptyInput = (text: string): string => text.toWellFormed() || ' '

function* splitIntoBatches(inputs: readonly string[]): Generator<string[]> {
  let batch: string[] = []
  let bytes = 0
  for (const input of inputs) {
    const size = Buffer.byteLength(input)
    if (batch.length > 0 && (batch.length === inputsMax || bytes + size > bytesMax)) {
      yield batch
      batch = []
      bytes = 0
    }
    batch.push(input)
    bytes += size
  }
  if (batch.length > 0) yield batch
}

function throwUpstreamRefusal(model: string, error: Error): never {
  if (error instanceof OpenAI.APIUserAbortError) throw error
  const status = error instanceof OpenAI.APIError ? error.status : undefined
  throw new Refusal(
    'upstream',
    `The embedding model ${model} did not answer${status ? ` (status ${status})` : ''}`,
    'Try again; if it lasts, the operator should check the provider and its key',
  )
}
