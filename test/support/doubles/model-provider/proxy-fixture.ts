import type { Test } from 'tap'
import type { Backend } from '#shared/backend.ts'
import {
  buildKey,
  createTestClient,
  startTestApi,
  type TestClient,
} from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import {
  startModelProvider,
  providerKey,
  providerUrl,
  type ModelProvider,
} from '#test/support/doubles/model-provider.ts'

export type FamilyName = 'openai' | 'anthropic' | 'google'

export type ProxyFixture = {
  backend: Backend
  provider: ModelProvider
  /** URL of the service. */
  base: string
  /** The key that owns the account, and a client with it. */
  ownerKey: string
  owner: TestClient
  /** A Memory Key with an empty vault, in the account with provider keys of all families. */
  newKey(): Promise<string>
}

/** The target of a client program: a provider directly, or the service. */
export type ClientTarget = {
  baseUrl: Record<FamilyName, string>
  /** The API key for the client of each family. */
  apiKey: Record<FamilyName, string>
  /** Additional headers of each family; Google's clients have no other place for a Memory Key. */
  headers: Partial<Record<FamilyName, Record<string, string>>>
  fetch: typeof fetch
}

/** A service with providers on loopback, and an account with provider keys. */
export async function startProxyFixture(
  t: Test,
  env: Record<string, string> = {},
): Promise<ProxyFixture> {
  const provider = await startModelProvider(t)
  const backend = await createTestBackend(t, { env: { ...provider.env, ...env } })
  const { base } = await startTestApi(t, backend)
  return { provider, backend, base, ...(await createProxyAccount(backend, base)) }
}

/** Creates the account of a fixture, for a service in another process on the same databases. */
export async function createProxyAccount(
  backend: Backend,
  base: string,
): Promise<Pick<ProxyFixture, 'ownerKey' | 'owner' | 'newKey'>> {
  const ownerKey = await buildKey(backend)
  const owner = createTestClient(base, ownerKey)
  for (const name of ['openai', 'anthropic', 'google'] as const) {
    const stored = await owner.send('PUT', `/v1/account/provider-keys/${name}`, {
      body: { key: providerKey(name) },
    })
    if (stored.status !== 200) throw new Error(`no provider key stored: ${stored.status}`)
  }
  return {
    ownerKey,
    owner,
    newKey: async () => ((await owner.post('/v1/keys')).body as { key: string }).key,
  }
}

/** The target of direct calls. */
export const directTarget = (
  { provider }: ProxyFixture,
  listening: typeof fetch = fetch,
): ClientTarget => ({
  baseUrl: {
    openai: providerUrl(provider.directOrigin, 'openai'),
    anthropic: providerUrl(provider.directOrigin, 'anthropic'),
    google: providerUrl(provider.directOrigin, 'google'),
  },
  apiKey: {
    openai: providerKey('openai'),
    anthropic: providerKey('anthropic'),
    google: providerKey('google'),
  },
  headers: {},
  fetch: listening,
})

/** The service, with a Memory Key; it uses the provider keys of the account, for Google that of the client. */
export const proxiedTarget = (
  { base }: Pick<ProxyFixture, 'base'>,
  key: string,
  listening: typeof fetch = fetch,
): ClientTarget => ({
  baseUrl: { openai: `${base}/v1`, anthropic: base, google: base },
  apiKey: { openai: key, anthropic: key, google: providerKey('google') },
  headers: { google: { 'X-Memory-Key': key } },
  fetch: listening,
})
