import { request } from 'node:http'
import { LLMock } from '@copilotkit/aimock'
import type { Test } from 'tap'
import { builtInNames, type BuiltInName } from '#shared/core/provider-registry.ts'
import { scriptMock } from '#test/support/doubles/model-provider/fixtures.ts'
import {
  findHeader,
  headerPairs,
  startRecordingServer,
  type Responder,
  type RecordingServer,
} from '#test/support/doubles/recording-server.ts'

export type ModelProvider = RecordingServer & {
  /** Environment variables that point all providers to this server. */
  env: Record<string, string>
  /** Clears the recorded requests, after the check for Memory Keys that also runs at the end. */
  clearRequests(): void
}

/** The version path in the base URL that the clients of each family expect. */
const versionPath: Partial<Record<BuiltInName, string>> = { anthropic: '', google: '' }

/** The base URL of a provider at one of the double's addresses, for `<NAME>_BASE_URL`. */
export const providerUrl = (origin: string, name: BuiltInName): string =>
  `${origin}/${name}${versionPath[name] ?? '/v1'}`

/** The key of a provider in tests, different for each provider to detect mix-ups. */
export const providerKey = (name: BuiltInName): string => `sk-of-${name}-0123456789abcdef`

/**
 * All model providers on loopback. It records exact bytes and answers with an imitation of the real APIs
 * unless a test sets answers. A Memory Key in a request fails the test.
 */
export async function startModelProvider(t: Test): Promise<ModelProvider> {
  const mock = new LLMock({ port: 0, chunkSize: 7, logLevel: 'silent' })
  scriptMock(mock)
  await mock.start()
  t.teardown(() => mock.stop())
  const provider = await startRecordingServer(t, imitatedBy(mock.port))
  t.teardown(() => refuseMemoryKeys(provider))
  const env = Object.fromEntries(
    builtInNames.map(name => [
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

/** Headers that real providers send: ids and limits, which are forwarded, and cookies, which are not. */
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

/** Forwards a request to the imitation, without the name of the provider in its path. */
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

/** The path without the name of the provider, with the version that the imitation supports. */
const imitatedPath = (url: string): string =>
  url
    .replace(/^\/[\w-]+/, '')
    .replace(/^\/v1beta\/openai\//, '/v1/')
    .replace(/^\/v1(?=\/models\/.*:)/, '/v1beta')

/** Matches Memory Keys in a request line, a header or a body. */
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
