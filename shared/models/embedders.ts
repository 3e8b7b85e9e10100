import { LRUCache } from 'lru-cache'
import type { Breaker, BreakerState } from '#shared/core/breaker.ts'
import type { Config } from '#shared/core/config.ts'
import { isTextsFault, ModelBreakers } from '#shared/models/model-breakers.ts'
import { ModelRefusal, plainText } from '#shared/models/model-refusal.ts'
import { localEmbedder } from '#shared/models/local-embedder.ts'
import type { Calibrator } from '#shared/models/calibration/calibrate-embedder.ts'
import type { Embedder } from '#shared/domain/embedder.ts'
import type { Outage } from '#shared/domain/jobs.ts'
import { splitModelName, variablePrefix, type Provider } from '#shared/core/provider-registry.ts'

export type Embedders = {
  /**
   * @param model the service's default, when missing
   * @throws Refusal `invalid` for a model that is not available here; `upstream` when its provider does not answer, or
   *   when the operator removed a model whose space holds memories.
   */
  get(model?: string): Promise<Embedder>
  /** Makes the next `get` of its model ask the provider for its dimension again. */
  forget(embedder: Embedder): Promise<void>
  /** Why a model is not available in this process; undefined for available ones. */
  unavailableReason(model: string): string | undefined
  /** Undefined for `local`, and for a model that only requests have named and that has not answered here yet. */
  breakerOf(model: string): Breaker | undefined
  /** Why a job waits for a model instead of failing; undefined where the fault may be the job's. */
  findOutage(refusal: ModelRefusal): Promise<Outage | undefined>
  /** Models whose breaker says that they are away. */
  away(): string[]
  readonly defaultModel: string
  /** Loads the code of the default model, and makes a server of the operator load the model. */
  load(): Promise<void>
  close(): void
}

/** Further embedders are opened again by a call of one word. */
const openMax = 64

/** Opens a provider's embedder at its first use. @param modelsInUse models whose spaces hold memories */
export function createEmbedders(
  config: Pick<Config, 'embeddingModel' | 'providers'> &
    Partial<Pick<Config, 'embeddingPrefixes' | 'embeddingDimensions'>>,
  modelsInUse: ReadonlySet<string> = new Set(),
  onChange: (model: string, state: BreakerState, reason: string | undefined) => void = () => {},
  calibrator?: Calibrator,
  keepWarm = new KeepWarm(),
): Embedders {
  const openEmbedders = new LRUCache<string, Promise<Embedder>>({ max: openMax })
  const breakers = new ModelBreakers({
    defaultModel: config.embeddingModel,
    modelsInUse,
    // The first call of a new embedder, which shows the dimension, is the probe.
    probe: model => open(model),
    onChange,
  })

  const open = async (model: string): Promise<Embedder> => {
    if (model === 'local') return localEmbedder()
    const parts = parseModelName(config, model)
    if (!parts)
      throw modelsInUse.has(model) ? lostProviderRefusal(model) : unknownModelRefusal(model)
    const { provider, name } = parts
    if (!isReachable(provider)) throw unavailableRefusal(model, provider, modelsInUse.has(model))
    const { openProviderEmbedder } = await importProviderEmbedder()
    return openProviderEmbedder({
      model,
      name,
      provider,
      apiKey: provider.apiKey ?? '',
      // The variables are for the model that EMBEDDINGS names.
      ...(model === config.embeddingModel && {
        prefixes: config.embeddingPrefixes,
        dimensions: config.embeddingDimensions ?? undefined,
      }),
    })
  }

  /** Opens an embedder that refuses at once while its provider does not answer. */
  const openGuarded = async (model: string): Promise<Embedder> => {
    const opened = await breakers.run(model, () => open(model))
    const embedder = model === 'local' || !calibrator ? opened : await calibrator.calibrate(opened)
    breakers.add(model)
    const isSelfHosted = parseModelName(config, model)?.provider.selfHosted === true
    // Names that only requests have used are not kept warm: a gateway answers to any name.
    if (!isSelfHosted || !(model === config.embeddingModel || modelsInUse.has(model)))
      return guard(breakers, embedder)
    const noteUse = () => keepWarm.used(model, () => embedder.embedQuery(plainText))
    noteUse()
    return guard(breakers, embedder, noteUse)
  }

  return {
    defaultModel: config.embeddingModel,
    async load() {
      if (config.embeddingModel === 'local') return
      // Makes Node load its `fetch`: 40 ms.
      void globalThis.Response
      await importProviderEmbedder()
      const parts = parseModelName(config, config.embeddingModel)
      if (parts?.provider.selfHosted) this.get().catch(() => {})
    },
    unavailableReason(model) {
      if (model === 'local') return undefined
      const parts = parseModelName(config, model)
      if (!parts) return unknownModelRefusal(model).message
      const { provider } = parts
      if (isReachable(provider)) return undefined
      return unavailableRefusal(model, provider, false).message
    },
    get(model = config.embeddingModel) {
      const known = openEmbedders.get(model)
      if (known) return known
      const opening = openGuarded(model)
      openEmbedders.set(model, opening)
      opening.catch(() => openEmbedders.delete(model))
      return opening
    },
    async forget(embedder) {
      const { model } = embedder
      const known = openEmbedders.get(model)
      // A later embedder stays, also one that is still being opened.
      const opened = await known?.catch(() => undefined)
      if (opened === embedder && openEmbedders.get(model) === known) openEmbedders.delete(model)
    },
    breakerOf: model => breakers.find(model),
    findOutage: refusal => breakers.findOutage(refusal),
    away: () => breakers.away(),
    close() {
      calibrator?.stop()
      keepWarm.stop()
      breakers.stop()
    },
  }
}

/** An offline service never loads the client of providers. */
const importProviderEmbedder = () => import('#shared/models/openai-embedder.ts')

/** The embedder behind the breaker of its model. */
function guard(breakers: ModelBreakers, embedder: Embedder, noteUse = () => {}): Embedder {
  const run = <Result>(work: () => Promise<Result>, isFault?: (error: unknown) => boolean) => {
    noteUse()
    return breakers.run(embedder.model, work, isFault)
  }
  return {
    ...embedder,
    // A getter: a calibration is measured in the background, after the embedder was opened.
    get calibration() {
      return embedder.calibration
    },
    embedEach: (texts, signal) => run(() => embedder.embedEach(texts, signal), isTextsFault),
    embedTexts: (texts, signal) => run(() => embedder.embedTexts(texts, signal), isTextsFault),
    embedQuery: (text, signal) => run(() => embedder.embedQuery(text, signal)),
    embedQueries: (texts, signal) => run(() => embedder.embedQueries(texts, signal)),
  }
}

const isReachable = ({ apiKey, isAddressSet, selfHosted }: Provider): boolean =>
  Boolean(apiKey) || isAddressSet || selfHosted === true

function parseModelName({ providers }: Pick<Config, 'providers'>, model: string) {
  const parts = splitModelName(providers, model)
  return parts && /^[A-Za-z0-9._:/@-]{1,120}$/.test(parts.name) ? parts : undefined
}

const unknownModelRefusal = (model: string): ModelRefusal =>
  new ModelRefusal(
    'invalid',
    'embeddings names no embedding model we know',
    'Use "local" or <provider>/<model>, such as openai/text-embedding-3-small',
    { model, isUnavailable: true },
  )

/** Where memories are in its space, the operator must act, not the client. */
function unavailableRefusal(model: string, { name }: Provider, inUse: boolean): ModelRefusal {
  const missing = `The operator has set no ${variablePrefix(name)}_API_KEY`
  return inUse
    ? lostModelRefusal(model, missing)
    : new ModelRefusal('invalid', unavailable(model), `${missing}; "local" needs none`, {
        model,
        isUnavailable: true,
      })
}

/** For a provider that is gone from the environment. */
const lostProviderRefusal = (model: string): ModelRefusal =>
  lostModelRefusal(model, `PROVIDERS names no ${model.split('/', 1)[0]}`)

const lostModelRefusal = (model: string, missing: string): ModelRefusal =>
  new ModelRefusal(
    'upstream',
    `${unavailable(model)}, and memories stand in its space`,
    `${missing}; with another model, POST /v1/memory/reembed takes a vault out of it`,
    { model, isUnavailable: true },
  )

const unavailable = (model: string): string => `The embedding model ${model} is not available here`

/** Ollama unloads a model after 5 minutes without a call (`OLLAMA_KEEP_ALIVE`), LM Studio after more. */
const everyMs = 240_000
const usedWithinMs = 12 * 3_600_000

/**
 * Asks a self-hosted model for one word before its server unloads it, as long as it was used within 12 hours: a model
 * that must be loaded is too late for the first question, which then gets no memories.
 */
export class KeepWarm {
  readonly #everyMs: number
  readonly #usedWithinMs: number
  readonly #models = new Map<string, { usedAt: number; timer: NodeJS.Timeout }>()

  constructor(times = { everyMs, usedWithinMs }) {
    this.#everyMs = times.everyMs
    this.#usedWithinMs = times.usedWithinMs
  }

  /** @param ask embeds one word, uncounted */
  used(model: string, ask: () => Promise<unknown>): void {
    const known = this.#models.get(model)
    if (known) {
      known.usedAt = performance.now()
      known.timer.refresh()
      return
    }
    const timer = setInterval(() => {
      const { usedAt } = this.#models.get(model)!
      if (performance.now() - usedAt > this.#usedWithinMs) this.#forget(model)
      else ask().catch(() => {})
    }, this.#everyMs).unref()
    this.#models.set(model, { usedAt: performance.now(), timer })
  }

  stop(): void {
    for (const model of this.#models.keys()) this.#forget(model)
  }

  #forget(model: string): void {
    clearInterval(this.#models.get(model)?.timer)
    this.#models.delete(model)
  }
}
