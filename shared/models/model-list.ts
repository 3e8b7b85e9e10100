import { openAiBaseUrl, openAiKeyHeader } from '#shared/core/provider-address.ts'
import type { Provider } from '#shared/core/provider-registry.ts'

/** How a provider is reached with one key; `apiKey` is empty where none is needed. */
export type ProviderAccess = { provider: Provider; apiKey: string }

const deadlineMs = 5_000
/** The longest list, an aggregator's of some hundred models, has about one mebibyte. */
const responseBytesMax = 8 * 1024 * 1024
const modelsMax = 5_000
const nameMax = 200

type ModelListEndpoint = { url: string; headers: Record<string, string> }

/** Where a provider lists its models. The native lists have pages of twenty or fifty by default. */
function listEndpoint({ provider, apiKey }: ProviderAccess): ModelListEndpoint {
  const { native, baseUrl } = provider
  if (native === 'anthropic') {
    const headers = { 'x-api-key': apiKey, 'anthropic-version': '2023-06-01' }
    return { url: `${baseUrl}/v1/models?limit=1000`, headers }
  }
  if (native === 'google') {
    return {
      url: `${baseUrl}/v1beta/models?pageSize=1000`,
      headers: { 'x-goog-api-key': apiKey },
    }
  }
  return {
    url: `${openAiBaseUrl(provider)}/models`,
    headers: apiKey ? openAiKeyHeader(provider, apiKey) : {},
  }
}

/**
 * The names of the models that a provider offers for a key, sorted. It is not asked where the operator lists
 * them, and never at Azure, whose list is of what could be deployed.
 *
 * @throws Error when it refuses, redirects, answers in another form, or takes longer than 5 s.
 */
export async function listModels(access: ProviderAccess): Promise<readonly string[]> {
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
    await response.body?.cancel()
    throw new Error(`${provider.name} answers with status ${response.status}`)
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

/**
 * `{data: [{id}]}` for all, except Google's `{models: [{name: 'models/…'}]}` and one provider that
 * sends the bare list.
 */
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
