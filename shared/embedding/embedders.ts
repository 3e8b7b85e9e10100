import type { Config } from '#shared/config.ts'
import { localEmbedder } from '#shared/embedding/local.ts'
import type { Embedder } from '#shared/embedding/embedder.ts'
import { Refusal } from '#shared/errors.ts'
import { providerNames, providers, type ProviderName } from '#shared/providers/registry.ts'

export type Embedders = {
  /** The embedder of a request: the named model, or the service's default. */
  get(model?: string): Promise<Embedder>
  readonly defaultModel: string
}

/**
 * The embedders this service can reach. A provider's is opened at its first use, since its dimension
 * is learnt from its first answer.
 */
export function createEmbedders(config: Config): Embedders {
  const opened = new Map<string, Promise<Embedder>>()

  const open = async (model: string): Promise<Embedder> => {
    if (model === 'local') return localEmbedder()
    const [provider, name] = splitModel(model)
    const { apiKey = '', baseUrl = providers[provider].baseUrl } = config.providers[provider] ?? {}
    if (!apiKey && !config.providers[provider]?.baseUrl && provider !== 'ollama') {
      throw new Refusal(
        'invalid',
        `The embedding model ${model} is not available here`,
        `The operator has set no ${provider.toUpperCase()}_API_KEY; "local" needs none`,
      )
    }
    // An offline service never loads the SDK.
    const { openProviderEmbedder } = await import('#shared/providers/openai-embedder.ts')
    return openProviderEmbedder({ model, name, apiKey, baseUrl })
  }

  return {
    defaultModel: config.embeddings,
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

function splitModel(model: string): [ProviderName, string] {
  const slash = model.indexOf('/')
  const provider = providerNames.find(name => name === model.slice(0, slash))
  const name = model.slice(slash + 1)
  if (slash > 0 && provider && /^[A-Za-z0-9._:/@-]{1,120}$/.test(name)) return [provider, name]
  throw new Refusal(
    'invalid',
    'embeddings names no embedding model we know',
    'Use "local" or <provider>/<model>, such as openai/text-embedding-3-small',
  )
}
