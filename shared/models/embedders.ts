import type { Config } from '#shared/core/config.ts'
import { localEmbedder } from '#shared/models/local-embedder.ts'
import type { Embedder } from '#shared/domain/embedder.ts'
import { Refusal } from '#shared/core/errors.ts'
import { providerNames, providers, type ProviderName } from '#shared/core/provider-registry.ts'

export type Embedders = {
  /**
   * The embedder of a request: the named model, or the service's default.
   *
   * @throws Refusal `invalid` for a model that is not available here; `upstream` when its provider
   *   does not answer, or when the operator removed a model whose space holds memories.
   */
  get(model?: string): Promise<Embedder>
  /** Why a model is not available, as long as this process runs; undefined for all others. */
  unavailableReason(model: string): string | undefined
  readonly defaultModel: string
}

type Settings = Pick<Config, 'embeddingModel' | 'providers'>

/**
 * The embedders this service can reach. A provider's embedder is opened at its first use, since its
 * first answer shows its dimension.
 *
 * @param modelsInUse models whose spaces hold memories.
 */
export function createEmbedders(
  config: Settings,
  modelsInUse: ReadonlySet<string> = new Set(),
): Embedders {
  const openEmbedders = new Map<string, Promise<Embedder>>()

  const open = async (model: string): Promise<Embedder> => {
    if (model === 'local') return localEmbedder()
    const parts = parseModelName(model)
    if (!parts) throw unknownModelRefusal()
    const [provider, name] = parts
    if (!isReachable(config, provider))
      throw unavailableRefusal(model, provider, modelsInUse.has(model))
    const { apiKey = '', baseUrl = providers[provider].baseUrl } = config.providers[provider] ?? {}
    // An offline service never loads the SDK.
    const { openProviderEmbedder } = await import('#shared/models/openai-embedder.ts')
    return openProviderEmbedder({ model, name, apiKey, baseUrl })
  }

  return {
    defaultModel: config.embeddingModel,
    unavailableReason(model) {
      if (model === 'local') return undefined
      const parts = parseModelName(model)
      if (!parts) return unknownModelRefusal().message
      const [provider] = parts
      if (isReachable(config, provider)) return undefined
      return unavailableRefusal(model, provider, false).message
    },
    get(model = config.embeddingModel) {
      const known = openEmbedders.get(model)
      if (known) return known
      const opening = open(model)
      openEmbedders.set(model, opening)
      // After a failure the next use tries again.
      opening.catch(() => openEmbedders.delete(model))
      return opening
    },
  }
}

/** Ollama needs no key, and has an address of its own where it runs beside the service. */
function isReachable({ providers: known }: Settings, provider: ProviderName): boolean {
  const { apiKey, baseUrl } = known[provider] ?? {}
  return Boolean(apiKey || baseUrl) || provider === 'ollama'
}

function parseModelName(model: string): [ProviderName, string] | undefined {
  const slash = model.indexOf('/')
  const provider = providerNames.find(name => name === model.slice(0, slash))
  const name = model.slice(slash + 1)
  if (slash > 0 && provider && /^[A-Za-z0-9._:/@-]{1,120}$/.test(name)) return [provider, name]
  return undefined
}

const unknownModelRefusal = (): Refusal =>
  new Refusal(
    'invalid',
    'embeddings names no embedding model we know',
    'Use "local" or <provider>/<model>, such as openai/text-embedding-3-small',
  )

/** When memories are in its space, the operator must act, not the client. */
function unavailableRefusal(model: string, provider: ProviderName, inUse: boolean): Refusal {
  const message = `The embedding model ${model} is not available here`
  const missing = `The operator has set no ${provider.toUpperCase()}_API_KEY`
  return inUse
    ? new Refusal(
        'upstream',
        `${message}, and memories stand in its space`,
        `${missing}; with another model, POST /v1/memory/reembed takes a vault out of it`,
      )
    : new Refusal('invalid', message, `${missing}; "local" needs none`)
}
