import OpenAI from 'openai'
import type { Calibration, Embedder } from '#shared/embedding/embedder.ts'
import { Refusal } from '#shared/errors.ts'
import { timedFetch } from '#shared/watch/timed-fetch.ts'

export type ProviderModel = {
  /** Provider-prefixed, as clients name it. */
  model: string
  /** As the provider names it. */
  name: string
  apiKey: string
  baseUrl: string
}

/** Inputs a call may carry; providers take 2,048, smaller batches fail and retry more cheaply. */
const batchSize = 256
const deadlineMs = 20_000
/** Somebody waits for the answer to a question. */
const questionPatience = { timeout: 4_000, maxRetries: 1 }
/** The provider counts its own tokens; 8,191 is the smallest limit in use, cut well below it. */
const charactersMax = 16_000

/**
 * Cosines at which unrelated texts end and equal ones begin, as the makers' models behave;
 * a model not named here gets cautious values.
 */
const calibrations: Record<string, Calibration> = {
  'text-embedding-3-small': { unrelated: 0.12, same: 0.85, floor: 0.16 },
  'text-embedding-3-large': { unrelated: 0.12, same: 0.85, floor: 0.16 },
  'text-embedding-ada-002': { unrelated: 0.72, same: 0.97, floor: 0.2 },
}
const cautious: Calibration = { unrelated: 0.2, same: 0.9, floor: 0.15 }

/**
 * Embeddings of any OpenAI-compatible endpoint. The first call learns the dimension.
 *
 * @throws Refusal `upstream` when the provider refuses or stays silent for 20 s; retries of rate
 *   limits and server errors are the SDK's (three).
 */
export async function openProviderEmbedder(provider: ProviderModel): Promise<Embedder> {
  const { model, name, apiKey, baseUrl } = provider
  const client = new OpenAI({
    apiKey: apiKey || 'none',
    baseURL: baseUrl,
    maxRetries: 3,
    timeout: deadlineMs,
    fetch: timedFetch(model.split('/')[0]!),
  })

  const embed = async (
    texts: readonly string[],
    signal?: AbortSignal,
    patience: { timeout?: number; maxRetries?: number } = {},
  ): Promise<Float32Array[]> => {
    const vectors: Float32Array[] = []
    for (let start = 0; start < texts.length; start += batchSize) {
      const input = texts.slice(start, start + batchSize).map(text => asInput(text))
      const answer = await client.embeddings
        .create({ model: name, input }, { ...patience, ...(signal && { signal }) })
        .catch((error: Error) => refuse(model, error))
      if (answer.data.length !== input.length) refuse(model, new Error('vectors are missing'))
      const inOrder = answer.data.toSorted((one, other) => one.index - other.index)
      vectors.push(...inOrder.map(({ embedding }) => unit(Float32Array.from(embedding))))
    }
    return vectors
  }

  const [probe] = await embed(['dimension'])
  const dimension = probe!.length
  return {
    model,
    dimension,
    space: spaceOf(model, dimension),
    calibration: calibrations[name] ?? cautious,
    embedTexts: (texts, signal) => embed(texts, signal),
    embedQuery: async (text, signal) => (await embed([text], signal, questionPatience))[0]!,
  }
}

/** A name for field paths that no other model and dimension gets: `/` is `__`, other signs `_` and hex. */
function spaceOf(model: string, dimension: number): string {
  const escaped = model.replaceAll(/[^A-Za-z0-9-]/g, sign =>
    sign === '/' ? '__' : `_${sign.codePointAt(0)!.toString(16).padStart(2, '0')}`,
  )
  return `${escaped}-${dimension}`
}

/** Providers refuse an empty input and one beyond their limit. */
const asInput = (text: string): string => text.slice(0, charactersMax).toWellFormed() || ' '

function unit(vector: Float32Array): Float32Array {
  let sum = 0
  for (const value of vector) sum += value * value
  const norm = Math.sqrt(sum)
  return norm === 0 ? vector : vector.map(value => value / norm)
}

function refuse(model: string, error: Error): never {
  if (error instanceof OpenAI.APIUserAbortError) throw error
  const status = error instanceof OpenAI.APIError ? error.status : undefined
  throw new Refusal(
    'upstream',
    `The embedding model ${model} did not answer${status ? ` (status ${status})` : ''}`,
    'Try again; if it lasts, the operator should check the provider and its key',
  )
}
