import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { readConfig, type Config } from '#shared/core/config.ts'
import { buildKey, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend, createTestConfig } from '#test/support/start/backend.ts'
import {
  neverRespond,
  respondWith,
  stallAfter,
} from '#test/support/doubles/model-provider/answers.ts'
import { chatCompletionEvents } from '#test/support/doubles/chat-stream.ts'
import { startModelProvider, providerKey } from '#test/support/doubles/model-provider.ts'

/** How long the service waits for a provider. */

const provider = await startModelProvider(t)
const config = await createTestConfig(t, provider.env)

async function asker(limits: Partial<Pick<Config, 'providerFirstByteMs' | 'providerIdleMs'>>) {
  const backend = await createTestBackend(t, { config: { ...config, ...limits } })
  const { base } = await startTestApi(t, backend)
  const key = await buildKey(backend)
  return (stream: boolean) =>
    fetch(`${base}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-memory-key': key,
        'x-provider-key': providerKey('openai'),
      },
      body: JSON.stringify({
        model: 'openai/gpt-5',
        stream,
        messages: [{ role: 'user', content: 'Think.' }],
      }),
    })
}
const hasty = await asker({ providerFirstByteMs: 100 })
const idle = await asker({ providerIdleMs: 100 })

t.test('as long as the official clients wait, unless the operator says otherwise', async t => {
  const usual = {
    DATABASE_URL: 'postgres://db/vault',
    MONGODB_URI: 'mongodb://mongo/vault',
    MASTER_KEY: 'ab'.repeat(32),
    KEY_PEPPER: 'sixteen characters',
  }
  t.match(readConfig(usual), { providerFirstByteMs: 600_000, providerIdleMs: 600_000 })
  const env = { ...usual, PROVIDER_FIRST_BYTE_SECONDS: '7', PROVIDER_IDLE_SECONDS: '8' }
  t.match(readConfig(env), { providerFirstByteMs: 7_000, providerIdleMs: 8_000 })
  t.throws(
    () => readConfig({ ...usual, PROVIDER_IDLE_SECONDS: '0' }),
    /PROVIDER_IDLE_SECONDS must be/,
  )
})

t.test('502: an answer that does not begin in time', async t => {
  provider.respondNext(neverRespond)
  const response = await hasty(false)
  t.equal(response.status, 502)
  t.match(await response.json(), { error: { message: /^openai did not answer in time\./ } })
})

t.test('200: one that takes longer than the next piece may', async t => {
  provider.respondNext(async (seen, answer) => {
    await delay(300)
    // Its head is all of it: nothing is left to wait for.
    await respondWith([], { headers: { 'content-length': '0' } })(seen, answer)
  })
  t.equal((await idle(false)).status, 200)
})

t.test('an answer that does not go on in time breaks', async t => {
  provider.respondNext(stallAfter(chatCompletionEvents(['Half'], { end: false })))
  const response = await idle(true)
  t.equal(response.status, 200)
  await t.rejects(response.text())
})
