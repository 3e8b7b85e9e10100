import type { Embedder } from '#shared/domain/embedder.ts'
import { Refusal } from '#shared/core/errors.ts'
import { openAiKeyHeader, openAiUrl } from '#shared/core/provider-registry.ts'
import { unmeasuredCalibration } from '#shared/models/calibration/calibrate-embedder.ts'
import { batchLimitsOf } from '#shared/models/batch-limits.ts'
import { DimensionRefusal, ModelRefusal, plainText } from '#shared/models/model-refusal.ts'
import { embedInBatches } from '#shared/models/embed-in-batches.ts'
import {
  callEmbeddings,
  EmbeddingRefusal,
  type CallPolicy,
} from '#shared/models/embeddings-call.ts'
import {
  formsMark,
  formsOfModel,
  withoutFields,
  type InputForm,
  type SetPrefixes,
} from '#shared/models/embedding-forms.ts'
import type { ProviderAccess } from '#shared/models/model-catalog.ts'
import { toUnitLength } from '#shared/models/split-text.ts'

const textPolicy: CallPolicy = { timeoutMs: 20_000, retries: 3 }
/** A client waits for a query, and for the first call of all. */
const queryPolicy: CallPolicy = { timeoutMs: 3_400, retries: 1, leaveMs: 20_000 }
const queryCharactersMax = 16_000

/**
 * Embeddings of any OpenAI-compatible endpoint. The first call shows the dimension, refusals show the limits of a call.
 * A text that is too long, or longer than 8,000 bytes, gets the mean of the vectors of its parts.
 *
 * @throws Refusal `upstream` when the provider refuses, does not answer for 20 s, or answers without vectors;
 *   DimensionRefusal for vectors of another dimension. Rate limits and overloads are tried again (three times).
 */
export async function openProviderEmbedder(
  settings: ProviderAccess & {
    /** Provider-prefixed, as clients name the model. */
    model: string
    /** As the provider names it. */
    name: string
    /** In place of those of the model's family. */
    prefixes?: SetPrefixes | undefined
    /** For models with vectors of several lengths. */
    dimensions?: number | undefined
  },
): Promise<Embedder> {
  const { model, name, provider, apiKey, prefixes, dimensions } = settings
  const url = openAiUrl(provider, '/embeddings', name).href
  const keyHeader = apiKey ? openAiKeyHeader(provider, apiKey) : {}
  const fields = { model: name, ...(dimensions && { [dimensionsField(name)]: dimensions }) }
  let forms = formsOfModel(name, prefixes)
  let encoding: { encoding_format?: 'base64' } = { encoding_format: 'base64' }
  const limits = batchLimitsOf(model, url)

  let knownDimension: number | undefined
  const call = async (
    inputs: readonly string[],
    { prefix = '', fields: form }: InputForm,
    policy: CallPolicy,
  ): Promise<Float32Array[]> => {
    const endpoint = { model, url, apiKey, keyHeader, fields: { ...fields, ...encoding, ...form } }
    const vectors = await callEmbeddings(
      endpoint,
      inputs.map(text => prefix + text),
      policy,
    )
    const { length } = vectors[0]!
    if (knownDimension !== undefined && length !== knownDimension)
      throw new DimensionRefusal(model, knownDimension, length, spaceOf(length))
    return vectors.map(toUnitLength)
  }
  const spaceOf = (dimension: number): string => spaceName(model, dimension) + formsMark(forms)
  const embed = (
    texts: readonly string[],
    kind: 'query' | 'passage',
    policy: CallPolicy,
    probe?: () => Promise<unknown>,
  ) =>
    embedInBatches(
      { limits, probe, call: inputs => call(inputs, forms[kind], policy) },
      texts.map(text => toNonEmptyInput(text)),
    )

  const embedEach: Embedder['embedEach'] = (texts, signal) =>
    embed(texts, 'passage', { ...textPolicy, signal }, () =>
      call([plainText], forms.passage, { ...queryPolicy, signal }),
    )
  const embedQueries: Embedder['embedQueries'] = async (texts, signal) => {
    const queries = texts.map(text => text.slice(0, queryCharactersMax))
    return allOrRefusal(await embed(queries, 'query', { ...queryPolicy, signal }))
  }

  /** Asks for one vector, then without what the server may refuse: base64 (Google), unknown fields. */
  const openProbe = async (): Promise<Float32Array> => {
    const known = formsOfModel(name, prefixes)
    const plain = withoutFields(known)
    const ways = formsMark(known) === formsMark(plain) ? [known] : [known, plain]
    let refusal: unknown
    for (forms of ways) {
      for (encoding of [{ encoding_format: 'base64' as const }, {}]) {
        try {
          return (await call([plainText], forms.passage, queryPolicy))[0]!
        } catch (error) {
          if (!(error instanceof EmbeddingRefusal) || error.pieces === undefined) throw error
          refusal ??= error
        }
      }
    }
    throw refusal
  }
  const dimension = (await openProbe()).length
  if (dimensions !== undefined && dimension !== dimensions)
    throw new ModelRefusal(
      'upstream',
      `The embedding model ${model} answers with vectors of ${dimension} numbers, not of ${dimensions}`,
      'The operator should set EMBEDDINGS_DIMENSIONS to a length that this model has, or not at all',
      { model, isUnavailable: true },
    )
  knownDimension = dimension
  return {
    model,
    dimension,
    space: spaceOf(dimension),
    calibration: unmeasuredCalibration,
    embedEach,
    embedTexts: async (texts, signal) => allOrRefusal(await embedEach(texts, signal)),
    embedQuery: async (text, signal) => (await embedQueries([text], signal))[0]!,
    embedQueries,
  }
}

/** Voyage and Mistral have another name than OpenAI, by their API references. */
const dimensionsField = (name: string): string =>
  /(?:^|\/)(?:voyage-|codestral-embed)/.test(name) ? 'output_dimension' : 'dimensions'

function allOrRefusal(outcomes: readonly (Float32Array | Refusal)[]): Float32Array[] {
  return outcomes.map(outcome => {
    if (outcome instanceof Refusal) throw outcome
    return outcome
  })
}

/** Unique by model and dimension, for field paths: `/` is `__`, other characters `_` and hex. */
function spaceName(model: string, dimension: number): string {
  const escaped = model.replaceAll(/[^A-Za-z0-9-]/g, sign =>
    sign === '/' ? '__' : `_${sign.codePointAt(0)!.toString(16).padStart(2, '0')}`,
  )
  return `${escaped}-${dimension}`
}

/** Providers refuse an empty input. */
const toNonEmptyInput = (text: string): string => text.toWellFormed() || ' '
