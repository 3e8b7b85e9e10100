import { createHash } from 'node:crypto'
import { createLruCache } from '#shared/core/lru-cache.ts'
import type { Config } from '#shared/core/config.ts'
import { Refusal } from '#shared/core/errors.ts'
import { providerWords } from '#shared/models/provider-words.ts'
import {
  lacksAddress,
  openAiBaseUrl,
  openAiKeyHeader,
  type BuiltInName,
  type Provider,
} from '#shared/core/provider-registry.ts'

/** How a provider is reached with one key; `apiKey` is empty where none is needed. */
export type ProviderAccess = { provider: Provider; apiKey: string }

/** @property fault why the last list could not be read */
type ModelList = { provider: string; models: readonly string[]; fault?: string }

/** The models of one provider with one key; times in epoch milliseconds. */
type CachedModelList = {
  models: readonly string[] | undefined
  fetchedAt: number
  requestedAt: number
  inFlight: Promise<void> | undefined
  fault?: string | undefined
}

const cacheTtlMs = 3_600_000
const retryMs = 60_000
/** A list has a few kilobytes, an aggregator's about thirty. */
const entriesMax = 1_000

/** The models of providers, as these list them. */
export class ModelCatalog {
  readonly #cache = createLruCache<CachedModelList>(entriesMax)
  readonly #onError: (provider: string, error: unknown) => void

  /** @param onError called with every provider that failed */
  constructor(onError: (provider: string, error: unknown) => void) {
    this.#onError = onError
  }

  /**
   * Reads the lists of all providers at once; that of a provider that never answered is empty. A list is valid for an
   * hour; concurrent callers share a request. A provider that fails keeps its last list and rests for a minute.
   *
   * @throws Refusal `upstream` when there are providers and none of them has ever answered.
   */
  async modelLists(
    providers: readonly ProviderAccess[],
  ): Promise<{ lists: ModelList[]; updatedAt: number }> {
    const entries = await Promise.all(providers.map(access => this.#refreshIfStale(access)))
    const lists = entries.map(({ models = [], fault }, index) => ({
      provider: providers[index]!.provider.name,
      models,
      ...(fault !== undefined && { fault }),
    }))
    if (providers.length > 0 && entries.every(({ models }) => models === undefined)) {
      const faults = lists.map(({ provider, fault }) => fault ?? provider)
      throw new Refusal(
        'upstream',
        `No provider has listed its models: ${faults.join('; ')}`,
        'Check the provider keys, or try again in a minute',
      )
    }
    const fetchTimes = entries.map(({ fetchedAt }) => fetchedAt).filter(Boolean)
    return { lists, updatedAt: fetchTimes.length > 0 ? Math.max(...fetchTimes) : Date.now() }
  }

  async #refreshIfStale(access: ProviderAccess): Promise<CachedModelList> {
    const id = cacheKey(access)
    const unknown = { models: undefined, fetchedAt: 0, requestedAt: 0, inFlight: undefined }
    const entry: CachedModelList = this.#cache.get(id) ?? unknown
    this.#cache.set(id, entry)
    const now = Date.now()
    const isFresh = now - entry.fetchedAt < cacheTtlMs || now - entry.requestedAt < retryMs
    if (!entry.inFlight && isFresh) return entry
    entry.inFlight ??= this.#fetch(entry, access).finally(() => (entry.inFlight = undefined))
    await entry.inFlight
    return entry
  }

  async #fetch(entry: CachedModelList, access: ProviderAccess): Promise<void> {
    entry.requestedAt = Date.now()
    try {
      entry.models = await listModels(access)
      entry.fetchedAt = Date.now()
      entry.fault = undefined
    } catch (error) {
      const { name } = access.provider
      const { message } = error as Error
      entry.fault = message.startsWith(name) ? message : `${name}: ${message}`
      this.#onError(name, error)
    }
  }
}

/** A hash, so that the cache holds no copy of a key. */
const cacheKey = ({ provider: { name, baseUrl }, apiKey }: ProviderAccess): string =>
  createHash('sha256')
    .update(JSON.stringify([name, baseUrl, apiKey]))
    .digest('base64url')

/** The providers that the account's own keys or else the operator's reach, in the registry's order. */
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

const deadlineMs = 5_000
/** The longest list, an aggregator's of some hundred models, has about one mebibyte. */
const responseBytesMax = 8 * 1024 * 1024
const modelsMax = 5_000
const nameMax = 200

/** Where a provider lists its models. The native lists have pages of twenty or fifty by default. */
function listEndpoint({ provider, apiKey }: ProviderAccess): {
  url: string
  headers: Record<string, string>
} {
  const { native, baseUrl } = provider
  if (native === 'anthropic') {
    const headers = { 'x-api-key': apiKey, 'anthropic-version': '2023-06-01' }
    return { url: `${baseUrl}/v1/models?limit=1000`, headers }
  }
  if (native === 'google') {
    const headers = { 'x-goog-api-key': apiKey }
    return { url: `${baseUrl}/v1beta/models?pageSize=1000`, headers }
  }
  const headers = apiKey ? openAiKeyHeader(provider, apiKey) : {}
  return { url: `${openAiBaseUrl(provider)}/models`, headers }
}

/**
 * The sorted names of a provider's models for a key: those that the operator lists, or else the provider's own. Azure
 * is never asked, since its list is of what could be deployed.
 *
 * @throws Error when it refuses, redirects, answers in another form, or takes longer than 5 s.
 */
async function listModels(access: ProviderAccess): Promise<readonly string[]> {
  const { provider } = access
  if (provider.models || provider.isAzure) return provider.models?.toSorted() ?? []
  const { url, headers } = listEndpoint(access)
  const response = await fetch(url, {
    headers: { accept: 'application/json', ...headers },
    // The key is for this address only: redirects are not followed.
    redirect: 'error',
    signal: AbortSignal.timeout(deadlineMs),
  })
  if (!response.ok) {
    const words = providerWords((await response.text()).slice(0, 8_192), [], [access.apiKey])
    throw new Error(
      `${provider.name} answers with status ${response.status}${words && `: ${words}`}`,
    )
  }
  return parseModelNames(JSON.parse(await readBoundedText(response)), provider)
}

async function readBoundedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > responseBytesMax) throw new Error('the list of models is too long')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

/** `{data: [{id}]}`; Google has `{models: [{name: 'models/…'}]}`, and one provider sends the bare list. */
function parseModelNames(answer: unknown, { name: provider, native }: Provider): string[] {
  const { data, models } = (answer ?? {}) as { data?: unknown; models?: unknown }
  const list = Array.isArray(answer) ? answer : native === 'google' ? models : data
  if (!Array.isArray(list)) throw new Error(`${provider} answers with no list of models`)
  const names = list.flatMap((row: { id?: unknown; name?: unknown } | null) => {
    const name = native === 'google' ? row?.name : row?.id
    return typeof name === 'string' ? [name.replace(/^models\//, '')] : []
  })
  // Names appear in answers, logs and requests.
  const printableNames = names.filter(name => /^[\x21-\x7e]+$/.test(name) && name.length <= nameMax)
  return [...new Set(printableNames)].toSorted().slice(0, modelsMax)
}

/**
 * The default chat model is the newest of the first family here that can be reached. Numbers in a name are its
 * version; names with more parts (previews, small or specialised models) are not of the family.
 */
const preferredFamilies: [BuiltInName, RegExp][] = [
  ['openai', /^gpt-(\d+)(?:\.(\d+))?$/],
  ['anthropic', /^claude-sonnet-(\d{1,2})(?:-(\d{1,2}))?(?:-(\d{8}))?$/],
  ['google', /^gemini-(\d+)(?:\.(\d+))?-flash$/],
  ['mistral', /^mistral-(?:large|medium)-latest$/],
  ['xai', /^grok-(\d+)(?:[.-](\d{1,2}))?$/],
  ['deepseek', /^deepseek-chat$/],
  ['openrouter', /^openrouter\/auto$/],
  ['groq', /^llama-(\d+)\.(\d+)-(\d+)b-versatile$/],
]

/** The provider-prefixed default of the reachable models: else the first model there is, else null. */
export function pickDefaultModel(lists: readonly ModelList[]): string | null {
  for (const [provider, family] of preferredFamilies) {
    const models = lists.find(list => list.provider === provider)?.models ?? []
    const [newest] = models
      .flatMap(name => {
        const match = family.exec(name)
        return match ? [{ name, version: match.slice(1).map(part => Number(part ?? 0)) }] : []
      })
      .toSorted((one, other) => compareVersions(other.version, one.version))
    if (newest) return `${provider}/${newest.name}`
  }
  const first = lists.find(({ models }) => models.length > 0)
  return first ? `${first.provider}/${first.models[0]}` : null
}

function compareVersions(one: readonly number[], other: readonly number[]): number {
  const index = one.findIndex((part, position) => part !== other[position])
  return index === -1 ? 0 : one[index]! - other[index]!
}
