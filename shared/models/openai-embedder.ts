import type { Calibration, Embedder } from '#shared/domain/embedder.ts'
import { Refusal } from '#shared/core/errors.ts'
import { openAiKeyHeader, openAiUrl } from '#shared/core/provider-address.ts'
import { batchLimitsOf } from '#shared/models/batch-limits.ts'
import { DimensionRefusal } from '#shared/models/dimension-refusal.ts'
import { embedInBatches, plainText } from '#shared/models/embed-in-batches.ts'
import {
  callEmbeddings,
  EmbeddingRefusal,
  type CallPolicy,
  type EmbeddingsEndpoint,
} from '#shared/models/embeddings-call.ts'
import type { ProviderAccess } from '#shared/models/model-list.ts'
import { toUnitLength } from '#shared/models/split-text.ts'

export type EmbeddingModelSettings = ProviderAccess & {
  /** Provider-prefixed, as clients name the model. */
  model: string
  /** As the provider names it. */
  name: string
}

const textPolicy: CallPolicy = { timeoutMs: 20_000, retries: 3 }
/** A query is shorter than a batch: a client waits for it, and for the first call of all. */
const queryPolicy: CallPolicy = { timeoutMs: 3_400, retries: 1 }
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
 * Embeddings of any OpenAI-compatible endpoint. The first call shows the dimension, refusals show how much
 * the model takes in a call. The vector of a text that is too long, or longer than 8,000 bytes, is the mean of
 * the vectors of its parts, so that all of it counts.
 *
 * @throws Refusal `upstream` when the provider refuses, does not answer for 20 s, or answers with anything
 *   but vectors; DimensionRefusal for vectors of another dimension. Rate limits and overloads are tried again
 *   (three times).
 */
export async function openProviderEmbedder({
  model,
  name,
  provider,
  apiKey,
}: EmbeddingModelSettings): Promise<Embedder> {
  const url = openAiUrl(provider, '/embeddings', name).href
  let endpoint: EmbeddingsEndpoint = {
    model,
    url,
    apiKey,
    keyHeader: apiKey ? openAiKeyHeader(provider, apiKey) : {},
    fields: { model: name, encoding_format: 'base64' },
  }
  const limits = batchLimitsOf(model, url)

  /** Of every vector, once the first answer has shown it. */
  let knownDimension: number | undefined
  const call = async (inputs: readonly string[], policy: CallPolicy): Promise<Float32Array[]> => {
    const vectors = await callEmbeddings(endpoint, inputs, policy)
    const { length } = vectors[0]!
    if (knownDimension !== undefined && length !== knownDimension)
      throw new DimensionRefusal(model, knownDimension, length, spaceName(model, length))
    return vectors.map(toUnitLength)
  }
  const embed = (texts: readonly string[], policy: CallPolicy) =>
    embedInBatches(
      { limits, call: inputs => call(inputs, policy) },
      texts.map(text => toNonEmptyInput(text)),
    )

  const embedEach: Embedder['embedEach'] = (texts, signal) =>
    embed(texts, { ...textPolicy, signal })
  const embedQueries: Embedder['embedQueries'] = async (texts, signal) => {
    const queries = texts.map(text => text.slice(0, queryCharactersMax))
    return allOrRefusal(await embed(queries, { ...queryPolicy, signal }))
  }

  const [probe] = await call([plainText], queryPolicy).catch((error: unknown) => {
    if (!(error instanceof EmbeddingRefusal) || error.parts === undefined) throw error
    // Google's endpoint, for one, refuses base64, which is a quarter of the bytes.
    endpoint = { ...endpoint, fields: { model: name } }
    return call([plainText], queryPolicy)
  })
  const dimension = probe!.length
  knownDimension = dimension
  return {
    model,
    dimension,
    space: spaceName(model, dimension),
    calibration: calibrations[name] ?? defaultCalibration,
    embedEach,
    embedTexts: async (texts, signal) => allOrRefusal(await embedEach(texts, signal)),
    embedQuery: async (text, signal) => (await embedQueries([text], signal))[0]!,
    embedQueries,
  }
}

function allOrRefusal(outcomes: readonly (Float32Array | Refusal)[]): Float32Array[] {
  return outcomes.map(outcome => {
    if (outcome instanceof Refusal) throw outcome
    return outcome
  })
}

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
