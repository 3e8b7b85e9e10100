import type { Test } from 'tap'
import {
  buildKey,
  createTestClient,
  startJobWorkers,
  startTestApi,
} from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { readDocuments } from '#test/support/start/insert-memories.ts'
import { providerKey, startModelProvider } from '#test/support/doubles/model-provider.ts'
import type { RecordedRequest } from '#test/support/doubles/recording-server.ts'
import { waitUntilIdle } from '#test/support/checks/observe-jobs.ts'

export const completionsPath = '/v1/chat/completions'

/** A request of one user message. */
export const asks = (content: string, more: object = {}) => ({
  model: 'openai/gpt-5',
  messages: [{ role: 'user', content }],
  ...more,
})

/** A backend with a worker for `ingest`, its API, and a model provider on loopback. */
export async function startCompletions(t: Test) {
  const provider = await startModelProvider(t)
  const backend = await createTestBackend(t, {
    env: { ...provider.env, GROQ_API_KEY: 'of the operator' },
  })
  const { base } = await startTestApi(t, backend)
  const anonymous = createTestClient(base)
  await startJobWorkers(backend, 'ingest')

  /** Creates a key with a new vault, and headers for OpenAI calls with it. */
  async function user() {
    const key = await buildKey(backend)
    const headers = { 'x-memory-key': key, authorization: `Bearer ${providerKey('openai')}` }
    const post = (body: unknown, more: Record<string, string> = {}, query = '') =>
      anonymous.post(completionsPath + query, body, { ...headers, ...more })
    /** Role and text of every stored memory, once no exchange and no operation is open. */
    const stored = async (): Promise<[string, string][]> => {
      await waitUntilIdle(backend)
      return (await readDocuments(backend, key)).map(({ role, text }) => [role, text])
    }
    return { key, headers, post, stored }
  }

  return {
    provider,
    backend,
    base,
    anonymous,
    user,
    /** Number of model calls, without requests for the list of models. */
    calls: () => provider.requests.filter(({ method }) => method === 'POST').length,
    last: (): RecordedRequest => provider.requests.at(-1)!,
  }
}
