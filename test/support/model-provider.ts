import { request } from 'node:http'
import { LLMock } from '@copilotkit/aimock'
import type { Test } from 'tap'
import { providerNames, type ProviderName } from '#shared/core/provider-registry.ts'
import { scriptMock } from '#test/support/model-provider/fixtures.ts'
import {
  findHeader,
  headerPairs,
  startRecordingServer,
  type Responder,
  type RecordingServer,
} from '#test/support/recording-server.ts'

export type ModelProvider = RecordingServer & {
  /** The environment that sends a service here, for every provider. */
  env: Record<string, string>
  /** Forgets what has been asked, after the same look for Memory Keys as at the end. */
  clearRequests(): void
}

/** Where each family's own clients expect their base URL to end. */
const versionPath: Partial<Record<ProviderName, string>> = { anthropic: '', google: '' }

/** The base URL of a provider at one of the double's addresses, as `<NAME>_BASE_URL` takes it. */
export const providerUrl = (origin: string, name: ProviderName): string =>
  `${origin}/${name}${versionPath[name] ?? '/v1'}`

/** The key of a provider in these tests: another one for each, so that a mix-up shows. */
export const providerKey = (name: ProviderName): string => `sk-of-${name}-0123456789abcdef`

/**
 * Every model provider on loopback: a recorder of exact bytes, answered by an imitation of the real APIs
 * unless a test says what to answer. A Memory Key that ever arrives fails the test.
 */
export async function startModelProvider(t: Test): Promise<ModelProvider> {
  const mock = new LLMock({ port: 0, chunkSize: 7, logLevel: 'silent' })
  scriptMock(mock)
  await mock.start()
  t.teardown(() => mock.stop())
  const provider = await startRecordingServer(t, imitatedBy(mock.port))
  t.teardown(() => refuseMemoryKeys(provider))
  const env = Object.fromEntries(
    providerNames.map(name => [
      `${name.toUpperCase()}_BASE_URL`,
      providerUrl(provider.origin, name),
    ]),
  )
  const forget = (): void => {
    refuseMemoryKeys(provider)
    provider.requests.length = 0
  }
  return { ...provider, env, clearRequests: forget }
}

/** What real providers send beside their bodies: ids and limits are for the client, cookies are not. */
const usual = {
  'x-request-id': 'req_1',
  'request-id': 'req_2',
  'openai-organization': 'org-1',
  'openai-processing-ms': '17',
  'x-ratelimit-remaining-requests': '4999',
  'anthropic-ratelimit-tokens-remaining': '39000',
  'cache-control': 'no-cache',
  'set-cookie': '__session=of-the-provider; path=/; secure',
}

/** Passes a request on, without the provider's name in its path, and its answer back. */
const imitatedBy =
  (port: number): Responder =>
  (seen, answer) =>
    new Promise((resolve, reject) => {
      const path = imitatedPath(seen.url)
      const onward = request(
        {
          port,
          host: '127.0.0.1',
          method: seen.method,
          path,
          headers: seen.headers.flat(),
          signal: answer.disconnected,
        },
        response => {
          const type = findHeader(headerPairs(response.rawHeaders), 'content-type')
          answer.head(response.statusCode!, { ...(type && { 'content-type': type }), ...usual })
          response
            .on('data', (bytes: Buffer) => void answer.write(bytes))
            .once('end', () => {
              answer.end()
              resolve()
            })
        },
      )
      onward.once('error', error => (answer.disconnected.aborted ? resolve() : reject(error)))
      onward.end(seen.body)
    })

/** Without the provider's name; what the imitation knows under one version only goes there. */
const imitatedPath = (url: string): string =>
  url
    .replace(/^\/\w+/, '')
    .replace(/^\/v1beta\/openai\//, '/v1/')
    .replace(/^\/v1(?=\/models\/.*:)/, '/v1beta')

/** Anything that looks like a Memory Key, in a line, a header or a body. */
const memoryKey = /mk_[A-Za-z0-9]/

function refuseMemoryKeys({ requests }: RecordingServer): void {
  for (const { method, url, headers, body } of requests) {
    const head = [url, ...headers.flat()].find(text => memoryKey.test(text))
    if (head) throw new Error(`a Memory Key reached the provider: ${method} ${url}`)
    if (memoryKey.test(body.toString('latin1'))) {
      throw new Error(`a Memory Key reached the provider in a body: ${method} ${url}`)
    }
  }
}
