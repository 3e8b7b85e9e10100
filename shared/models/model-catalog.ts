import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Config } from '#shared/core/config.ts'
import { Refusal } from '#shared/core/errors.ts'
import { listModels, type ProviderAccess } from '#shared/models/model-list.ts'
import { lacksAddress } from '#shared/core/provider-registry.ts'

type ModelList = { provider: string; models: readonly string[] }

export type ModelCatalog = {
  /**
   * The model lists of these providers, without providers that never answered. All are requested at
   * once. A list is valid for an hour; concurrent callers share a request. A provider that fails
   * keeps its last list and is not asked again for a minute.
   *
   * @throws Refusal `upstream` when there are providers and none of them has ever answered.
   */
  modelLists(
    providers: readonly ProviderAccess[],
  ): Promise<{ lists: ModelList[]; updatedAt: number }>
}

/** Of one provider with one key; times in epoch milliseconds. */
type CachedModelList = {
  models: readonly string[] | undefined
  fetchedAt: number
  requestedAt: number
  inFlight: Promise<void> | undefined
}

const cacheTtlMs = 3_600_000
const retryMs = 60_000
/** A list has a few kilobytes, an aggregator's about thirty. */
const entriesMax = 1_000

/** @param onError called with every provider that failed */
export function createModelCatalog({
  onError,
}: {
  onError: (provider: string, error: unknown) => void
}): ModelCatalog {
  const cache = new LRUCache<string, CachedModelList>({ max: entriesMax })

  const entryOf = (access: ProviderAccess): CachedModelList => {
    const id = cacheKey(access)
    const known = cache.get(id)
    if (known) return known
    const entry = { models: undefined, fetchedAt: 0, requestedAt: 0, inFlight: undefined }
    cache.set(id, entry)
    return entry
  }

  const fetchModels = async (entry: CachedModelList, access: ProviderAccess): Promise<void> => {
    entry.requestedAt = Date.now()
    try {
      entry.models = await listModels(access)
      entry.fetchedAt = Date.now()
    } catch (error) {
      onError(access.provider.name, error)
    }
  }

  const refreshIfStale = async (access: ProviderAccess): Promise<CachedModelList> => {
    const entry = entryOf(access)
    const fresh = Date.now() - entry.fetchedAt < cacheTtlMs
    if (!entry.inFlight && (fresh || Date.now() - entry.requestedAt < retryMs)) return entry
    entry.inFlight ??= fetchModels(entry, access).finally(() => (entry.inFlight = undefined))
    await entry.inFlight
    return entry
  }

  return {
    async modelLists(providers) {
      const entries = await Promise.all(providers.map(refreshIfStale))
      const lists = entries.flatMap(({ models }, index) =>
        models ? [{ provider: providers[index]!.provider.name, models }] : [],
      )
      if (lists.length === 0 && providers.length > 0) {
        throw new Refusal(
          'upstream',
          `No provider has listed its models: ${providers.map(({ provider }) => provider.name).join(', ')}`,
          'Check the provider keys, or try again in a minute',
        )
      }
      const fetchTimes = entries.map(({ fetchedAt }) => fetchedAt).filter(Boolean)
      return { lists, updatedAt: fetchTimes.length > 0 ? Math.max(...fetchTimes) : Date.now() }
    },
  }
}

/** A hash, so that the cache holds no copy of a key. */
const cacheKey = ({ provider: { name, baseUrl }, apiKey }: ProviderAccess): string =>
  createHash('sha256')
    .update(JSON.stringify([name, baseUrl, apiKey]))
    .digest('base64url')

/**
 * The providers that can be reached with the account's own keys or else with the operator's, in the
 * registry's order. Those that the operator runs need no key but an address.
 */
export function reachableProviders(
  { providers }: Pick<Config, 'providers'>,
  keys: ReadonlyMap<string, string>,
): ProviderAccess[] {
  return [...providers.values()].flatMap(provider => {
    const apiKey = keys.get(provider.name) ?? provider.apiKey ?? ''
    const isReached = provider.selfHosted ? !lacksAddress(provider) : apiKey !== ''
    return isReached ? [{ provider, apiKey }] : []
  })
}
