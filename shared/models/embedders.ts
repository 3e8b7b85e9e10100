import { Breaker, type BreakerState } from '#shared/core/breaker.ts'
import type { Config } from '#shared/core/config.ts'
import { DimensionRefusal } from '#shared/models/dimension-refusal.ts'
import { localEmbedder } from '#shared/models/local-embedder.ts'
import type { Embedder } from '#shared/domain/embedder.ts'
import { Refusal } from '#shared/core/errors.ts'
import { splitModelName, variablePrefix, type Provider } from '#shared/core/provider-registry.ts'

export type Embedders = {
  /**
   * The embedder of a request: the named model, or the service's default.
   *
   * @throws Refusal `invalid` for a model that is not available here; `upstream` when its provider
   *   does not answer, or when the operator removed a model whose space holds memories.
   */
  get(model?: string): Promise<Embedder>
  /** The next `get` of its model asks the provider for its dimension again. */
  forget(embedder: Embedder): Promise<void>
  /** Why a model is not available, as long as this process runs; undefined for all others. */
  unavailableReason(model: string): string | undefined
  /**
   * Whether the provider of a model answers queries; undefined for `local`, and for a model that only
   * requests have named and that has not answered here yet.
   */
  breakerOf(model: string): Breaker | undefined
  readonly defaultModel: string
  /** Loads the code that the default model needs. Asks no provider. */
  load(): Promise<void>
  /** No provider is probed any more. */
  close(): void
}

type Settings = Pick<Config, 'embeddingModel' | 'providers'> &
  Partial<Pick<Config, 'embeddingPrefixes' | 'embeddingDimensions'>>

/**
 * The embedders this service can reach. A provider's embedder is opened at its first use, since its
 * first answer shows its dimension.
 *
 * @param modelsInUse models whose spaces hold memories.
 */
export function createEmbedders(
  config: Settings,
  modelsInUse: ReadonlySet<string> = new Set(),
  onChange: (model: string, state: BreakerState) => void = () => {},
): Embedders {
  const openEmbedders = new Map<string, Promise<Embedder>>()
  const breakers = new Map<string, Breaker>()
  /** A breaker is kept, and probes, for as long as this process runs: an invented name gets none. */
  const knownModels = new Set([config.embeddingModel, ...modelsInUse])

  const breakerOf = (model: string): Breaker | undefined => {
    if (model === 'local' || !knownModels.has(model)) return undefined
    const known = breakers.get(model)
    if (known) return known
    const breaker = new Breaker({
      name: model,
      // A new one: its first call, which shows the dimension, is the probe.
      probe: () => open(model),
      onChange: state => onChange(model, state),
    })
    breakers.set(model, breaker)
    return breaker
  }

  const open = async (model: string): Promise<Embedder> => {
    if (model === 'local') return localEmbedder()
    const parts = parseModelName(config, model)
    if (!parts) throw modelsInUse.has(model) ? lostProviderRefusal(model) : unknownModelRefusal()
    const { provider, name } = parts
    if (!isReachable(provider)) throw unavailableRefusal(model, provider, modelsInUse.has(model))
    const { openProviderEmbedder } = await importProviderEmbedder()
    return openProviderEmbedder({
      model,
      name,
      provider,
      apiKey: provider.apiKey ?? '',
      // The variables are about the model that EMBEDDINGS names.
      ...(model === config.embeddingModel && {
        prefixes: config.embeddingPrefixes,
        dimensions: config.embeddingDimensions ?? undefined,
      }),
    })
  }

  /** An embedder whose queries are refused at once while its provider does not answer. */
  const openGuarded = async (model: string): Promise<Embedder> => {
    const former = breakerOf(model)
    const embedder = await (former ? guard(former, model, () => open(model)) : open(model))
    knownModels.add(model)
    const breaker = breakerOf(model)
    return breaker ? guardQueries(breaker, embedder) : embedder
  }

  return {
    defaultModel: config.embeddingModel,
    async load() {
      if (config.embeddingModel === 'local') return
      // Node loads its `fetch` when that is first named: 40 ms.
      void globalThis.Response
      await importProviderEmbedder()
    },
    unavailableReason(model) {
      if (model === 'local') return undefined
      const parts = parseModelName(config, model)
      if (!parts) return unknownModelRefusal().message
      const { provider } = parts
      if (isReachable(provider)) return undefined
      return unavailableRefusal(model, provider, false).message
    },
    get(model = config.embeddingModel) {
      const known = openEmbedders.get(model)
      if (known) return known
      const opening = openGuarded(model)
      openEmbedders.set(model, opening)
      // After a failure the next use tries again.
      opening.catch(() => openEmbedders.delete(model))
      return opening
    },
    async forget(embedder) {
      const { model } = embedder
      const known = openEmbedders.get(model)
      // A later one stays, also one that is not open yet.
      const opened = await known?.catch(() => undefined)
      if (opened === embedder && openEmbedders.get(model) === known) openEmbedders.delete(model)
    },
    breakerOf,
    close: () => breakers.forEach(breaker => breaker.stop()),
  }
}

/** An offline service never loads the client of providers. */
const importProviderEmbedder = () => import('#shared/models/openai-embedder.ts')

const guardQueries = (breaker: Breaker, embedder: Embedder): Embedder => ({
  ...embedder,
  embedQuery: (text, signal) =>
    guard(breaker, embedder.model, () => embedder.embedQuery(text, signal)),
  embedQueries: (texts, signal) =>
    guard(breaker, embedder.model, () => embedder.embedQueries(texts, signal)),
})

const guard = <Result>(
  breaker: Breaker,
  model: string,
  work: () => Promise<Result>,
): Promise<Result> => breaker.run(work, () => noAnswerRefusal(model), isUpstreamFault)

/** A model of another dimension does answer. */
const isUpstreamFault = (error: unknown): boolean =>
  error instanceof Refusal && error.reason === 'upstream' && !(error instanceof DimensionRefusal)

const noAnswerRefusal = (model: string): Refusal =>
  new Refusal(
    'upstream',
    `The embedding model ${model} has not answered lately`,
    'It is tried again every few seconds; if it lasts, the operator should check the provider and its key',
  )

/** Those that the operator runs need no key, and have an address of their own beside the service. */
const isReachable = ({ apiKey, isAddressSet, selfHosted }: Provider): boolean =>
  Boolean(apiKey) || isAddressSet || selfHosted === true

function parseModelName({ providers }: Pick<Config, 'providers'>, model: string) {
  const parts = splitModelName(providers, model)
  return parts && /^[A-Za-z0-9._:/@-]{1,120}$/.test(parts.name) ? parts : undefined
}

const unknownModelRefusal = (): Refusal =>
  new Refusal(
    'invalid',
    'embeddings names no embedding model we know',
    'Use "local" or <provider>/<model>, such as openai/text-embedding-3-small',
  )

/** When memories are in its space, the operator must act, not the client. */
function unavailableRefusal(model: string, { name }: Provider, inUse: boolean): Refusal {
  const missing = `The operator has set no ${variablePrefix(name)}_API_KEY`
  return inUse
    ? lostModelRefusal(model, missing)
    : new Refusal('invalid', unavailable(model), `${missing}; "local" needs none`)
}

/** A provider of the operator's own that is gone from the environment. */
const lostProviderRefusal = (model: string): Refusal =>
  lostModelRefusal(model, `PROVIDERS names no ${model.split('/', 1)[0]}`)

const lostModelRefusal = (model: string, missing: string): Refusal =>
  new Refusal(
    'upstream',
    `${unavailable(model)}, and memories stand in its space`,
    `${missing}; with another model, POST /v1/memory/reembed takes a vault out of it`,
  )

const unavailable = (model: string): string => `The embedding model ${model} is not available here`
