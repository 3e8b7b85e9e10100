import { createHash } from 'node:crypto'
import type { Config } from '#shared/core/config.ts'
import { Refusal } from '#shared/core/errors.ts'
import { listModels, type ProviderAccess } from '#shared/models/model-list.ts'
import {
  providerNames,
  providers as registry,
  type ProviderName,
} from '#shared/core/provider-registry.ts'

type ModelList = { provider: ProviderName; models: string[] }

export type Catalog = {
  /**
   * What these providers offer, those left out that have never answered. All are asked at once; a list
   * is an hour good, and whoever asks meanwhile waits for the same answer. A provider that fails keeps
   * its last list, and is left alone for a minute.
   *
   * @throws Refusal `upstream` when there are providers and none of them has ever answered.
   */
  modelsOf(providers: readonly ProviderAccess[]): Promise<{ lists: ModelList[]; updatedAt: number }>
}

/** Of one provider with one key; times in epoch milliseconds. */
type Entry = {
  models: string[] | undefined
  answeredAt: number
  askedAt: number
  asking: Promise<void> | undefined
}

const freshMs = 3_600_000
const retryMs = 60_000
/** A list has a few kilobytes, an aggregator's about thirty. */
const entriesMax = 1_000

/** @param onError hears every provider that failed, by name */
export function createCatalog({
  onError,
}: {
  onError: (provider: ProviderName, error: unknown) => void
}): Catalog {
  const known = new Map<string, Entry>()

  const entryOf = (access: ProviderAccess): Entry => {
    const id = idOf(access)
    const entry = known.get(id) ?? {
      models: undefined,
      answeredAt: 0,
      askedAt: 0,
      asking: undefined,
    }
    known.delete(id)
    known.set(id, entry)
    if (known.size > entriesMax) known.delete(known.keys().next().value!)
    return entry
  }

  const ask = async (entry: Entry, access: ProviderAccess): Promise<void> => {
    entry.askedAt = Date.now()
    try {
      entry.models = await listModels(access)
      entry.answeredAt = Date.now()
    } catch (error) {
      onError(access.provider, error)
    }
  }

  const upToDate = async (access: ProviderAccess): Promise<Entry> => {
    const entry = entryOf(access)
    const fresh = Date.now() - entry.answeredAt < freshMs
    if (!entry.asking && (fresh || Date.now() - entry.askedAt < retryMs)) return entry
    entry.asking ??= ask(entry, access).finally(() => (entry.asking = undefined))
    await entry.asking
    return entry
  }

  return {
    async modelsOf(providers) {
      const entries = await Promise.all(providers.map(upToDate))
      const lists = entries.flatMap(({ models }, index) =>
        models ? [{ provider: providers[index]!.provider, models }] : [],
      )
      if (lists.length === 0 && providers.length > 0) {
        throw new Refusal(
          'upstream',
          `No provider has listed its models: ${providers.map(({ provider }) => provider).join(', ')}`,
          'Check the provider keys, or try again in a minute',
        )
      }
      const answered = entries.map(({ answeredAt }) => answeredAt).filter(Boolean)
      return { lists, updatedAt: answered.length > 0 ? Math.max(...answered) : Date.now() }
    },
  }
}

/** Whoever reads the memory of this process finds no key in it twice. */
const idOf = ({ provider, apiKey, baseUrl }: ProviderAccess): string =>
  createHash('sha256')
    .update(JSON.stringify([provider, baseUrl, apiKey]))
    .digest('base64url')

/**
 * The providers that can be reached with an account's own keys or else with the operator's, in the
 * registry's order. Ollama needs no key but an address: nobody's own machine is asked unbidden.
 */
export function reachable(
  { providers }: Pick<Config, 'providers'>,
  keys: Partial<Record<ProviderName, string>>,
): ProviderAccess[] {
  return providerNames.flatMap(provider => {
    const settings = providers[provider] ?? {}
    const apiKey = keys[provider] ?? settings.apiKey ?? ''
    if (provider === 'ollama' ? !settings.baseUrl : !apiKey) return []
    return [{ provider, apiKey, baseUrl: settings.baseUrl ?? registry[provider].baseUrl }]
  })
}
