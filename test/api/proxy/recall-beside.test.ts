import pg from 'pg'
import t from 'tap'
import { buildKey, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend, createTestConfig } from '#test/support/start/backend.ts'
import { chatCompletion } from '#test/support/doubles/chat-stream.ts'
import { startEmbeddingProvider } from '#test/support/doubles/embedding-provider.ts'
import { insertMemories } from '#test/support/start/insert-memories.ts'
import { respondJson } from '#test/support/doubles/model-provider/answers.ts'
import { startModelProvider, providerKey } from '#test/support/doubles/model-provider.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

/** What is relevant to a new turn is searched for while the blocks of the turns before it are read. */

const embedding = await startEmbeddingProvider(t)
const provider = await startModelProvider(t)
provider.respondAlways(respondJson(chatCompletion('Fine.')))
const config = await createTestConfig(t, {
  ...provider.env,
  OLLAMA_BASE_URL: embedding.baseUrl,
  EMBEDDINGS: 'ollama/nomic',
})
// A step of the recall that takes longer is given up, and the first one waits for this file.
const backend = await createTestBackend(t, { config: { ...config, recallTimeoutMs: 600_000 } })
const { base } = await startTestApi(t, backend)
const blocker = new pg.Client({ connectionString: backend.config.databaseUrl })
await blocker.connect()
t.teardown(() => blocker.end())

const call = async (key: string, messages: readonly object[]) => {
  const response = await fetch(`${base}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-memory-key': key,
      'x-provider-key': providerKey('openai'),
    },
    body: JSON.stringify({ model: 'openai/gpt-5', messages }),
  })
  await response.text()
  return response.headers
}

const user = (content: string) => ({ role: 'user', content })
t.test('the question is embedded before the blocks of earlier turns are known', async t => {
  const key = await buildKey(backend)
  await insertMemories(backend, key, [{ text: 'The bicycle is orange.' }])
  const first = user('Hello')
  await call(key, [first])
  const asked = embedding.calls.length
  await blocker.query('begin')
  await blocker.query('lock table recalled_turns in access exclusive mode')
  const question = user('Which bicycle is orange?')
  const answering = call(key, [first, { role: 'assistant', content: 'Fine.' }, question])
  await waitUntil('the question is embedded', () => embedding.calls.length > asked)
  await blocker.query('rollback')
  t.match(Object.fromEntries(await answering), {
    'x-memory-status': 'ok',
    'x-memory-cache-safe': 'true',
  })
})
