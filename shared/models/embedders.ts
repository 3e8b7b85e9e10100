import type { Config } from '#shared/core/config.ts'
import { localEmbedder } from '#shared/models/local-embedder.ts'
import type { Embedder } from '#shared/domain/embedder.ts'
import { Refusal } from '#shared/core/errors.ts'
import { providerNames, providers, type ProviderName } from '#shared/core/provider-registry.ts'

export type Embedders = {
  /**
   * The embedder of a request: the named model, or the service's default.
   *
   * @throws Refusal `invalid` for a model that cannot be had here; `upstream` when its provider does not
   *   answer, or when the operator has taken it away from vaults that stand in its space.
   */
  get(model?: string): Promise<Embedder>
  /** Why a model cannot be had here, whoever asks and however often; undefined for all others. */
  whyNot(model: string): string | undefined
  readonly defaultModel: string
}

type Settings = Pick<Config, 'embeddings' | 'providers'>

/**
 * The embedders this service can reach. A provider's is opened at its first use, since its dimension
 * is learnt from its first answer.
 *
 * @param inUse models in whose spaces memories stand.
 */
export function createEmbedders(
  config: Settings,
  inUse: ReadonlySet<string> = new Set(),
): Embedders {
  const opened = new Map<string, Promise<Embedder>>()

  const open = async (model: string): Promise<Embedder> => {
    if (model === 'local') return localEmbedder()
    const parts = splitModel(model)
    if (!parts) throw unknownModel()
    const [provider, name] = parts
    if (!isReachable(config, provider)) throw unavailable(model, provider, inUse.has(model))
    const { apiKey = '', baseUrl = providers[provider].baseUrl } = config.providers[provider] ?? {}
    // An offline service never loads the SDK.
    const { openProviderEmbedder } = await import('#shared/models/openai-embedder.ts')
    return openProviderEmbedder({ model, name, apiKey, baseUrl })
  }

  return {
    defaultModel: config.embeddings,
    whyNot(model) {
      if (model === 'local') return undefined
      const parts = splitModel(model)
      if (!parts) return unknownModel().message
      const [provider] = parts
      if (isReachable(config, provider)) return undefined
      return unavailable(model, provider, false).message
    },
    get(model = config.embeddings) {
      const known = opened.get(model)
      if (known) return known
      const opening = open(model)
      opened.set(model, opening)
      // A provider that was down at the first use is asked again at the next.
      opening.catch(() => opened.delete(model))
      return opening
    },
  }
}

/** Ollama takes no key, and has an address of its own where it runs beside us. */
function isReachable({ providers: known }: Settings, provider: ProviderName): boolean {
  const { apiKey, baseUrl } = known[provider] ?? {}
  return Boolean(apiKey || baseUrl) || provider === 'ollama'
}

function splitModel(model: string): [ProviderName, string] | undefined {
  const slash = model.indexOf('/')
  const provider = providerNames.find(name => name === model.slice(0, slash))
  const name = model.slice(slash + 1)
  if (slash > 0 && provider && /^[A-Za-z0-9._:/@-]{1,120}$/.test(name)) return [provider, name]
  return undefined
}

const unknownModel = (): Refusal =>
  new Refusal(
    'invalid',
    'embeddings names no embedding model we know',
    'Use "local" or <provider>/<model>, such as openai/text-embedding-3-small',
  )

/** Where memories stand in its space it is the operator who has to do something, not who asks. */
function unavailable(model: string, provider: ProviderName, inUse: boolean): Refusal {
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
