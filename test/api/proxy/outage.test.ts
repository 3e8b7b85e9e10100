import t from 'tap'
import {
  buildKey,
  createTestClient,
  startTestApi,
  startJobWorkers,
} from '#test/support/start/api.ts'
import { createTestBackend, createTestConfig } from '#test/support/start/backend.ts'
import { chatCompletion } from '#test/support/doubles/chat-stream.ts'
import { startFaultProxy } from '#test/support/doubles/fault-proxy.ts'
import { respondJson } from '#test/support/doubles/model-provider/answers.ts'
import { startModelProvider, providerKey } from '#test/support/doubles/model-provider.ts'
import { countRows } from '#test/support/checks/observe.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { readDocuments } from '#test/support/start/insert-memories.ts'
import { revokeKey } from '#test/support/checks/alter.ts'

const provider = await startModelProvider(t)
const config = await createTestConfig(t, { ...provider.env, RECALL_TIMEOUT_MS: '500' })
const backend = await createTestBackend(t, { config })
await startJobWorkers(backend, 'ingest')

const path = '/v1/chat/completions'
const asks = (content: string) => ({
  model: 'openai/gpt-5',
  messages: [{ role: 'user', content }],
})

async function userAt(base: string) {
  const key = await buildKey(backend)
  const headers = { 'x-memory-key': key, authorization: `Bearer ${providerKey('openai')}` }
  const ask = (content: string) => createTestClient(base).post(path, asks(content), headers)
  const stored = (count: number) =>
    waitUntil(
      `${count} are stored`,
      async () => (await readDocuments(backend, key)).length === count,
    )
  return { key, ask, stored }
}

for (const state of ['freeze', 'shut'] as const) {
  t.test(`MongoDB is away (${state}): a call goes on without memory, and is stored`, async t => {
    const gate = await startFaultProxy(t, config.mongodbUri)
    const gated = await createTestBackend(t, { config: { ...config, mongodbUri: gate.url } })
    const { base } = await startTestApi(t, gated)
    const { ask, stored } = await userAt(base)
    provider.respondAlways(respondJson(chatCompletion('Fine.')))
    gate[state]()
    const { status, headers } = await ask('Where is the blue kettle?')
    t.equal(status, 200)
    t.equal(headers.get('x-memory-status'), 'degraded')
    await stored(2)
    provider.respondAlways()
    if (state === 'freeze') return
    gate.open()
    provider.respondAlways(respondJson(chatCompletion('Fine.')))
    let asked = 1
    await waitUntil('it is back', async () => {
      asked++
      return (
        (await ask('Where is the blue kettle now?')).headers.get('x-memory-status') !== 'degraded'
      )
    })
    await stored(asked * 2)
    provider.respondAlways()
  })
}

t.test(
  '503: Postgres is away before a call; during it the answer is whole and stored later',
  async t => {
    const gate = await startFaultProxy(t, config.databaseUrl)
    const gated = await createTestBackend(t, { config: { ...config, databaseUrl: gate.url } })
    const { base } = await startTestApi(t, gated)
    const { key, ask, stored } = await userAt(base)
    let release = (): void => {}
    const held = new Promise<void>(resolve => (release = resolve))
    provider.respondNext(async (seen, answer) => {
      await held
      await respondJson(chatCompletion('Patience.'))(seen, answer)
    })
    const asked = provider.requests.length
    const answering = ask('Are you there?')
    await waitUntil('the provider is asked', () => provider.requests.length > asked)
    await waitUntil(
      'what the user says is written',
      async () => (await countRows(backend, 'open_exchanges')) > 0,
    )
    gate.shut()
    release()
    const { status, body } = await answering
    t.equal(status, 200)
    t.equal(body.choices[0].message.content, 'Patience.')
    t.match(await ask('again'), { status: 503, headers: { get: Function } })
    t.equal(provider.requests.length, asked + 1)
    t.equal((await readDocuments(backend, key)).length, 0)
    gate.open()
    await stored(2)
    t.match(
      (await readDocuments(backend, key)).map(({ text }) => text),
      ['Are you there?', 'Patience.'],
    )
  },
)

for (const state of ['freeze', 'shut'] as const) {
  t.test(
    `Postgres is away (${state}): calls that need no memory go on, all others do not`,
    async t => {
      const gate = await startFaultProxy(t, config.databaseUrl)
      const databaseUrl = `${gate.url}${gate.url.includes('?') ? '&' : '?'}query_timeout=1500`
      const gated = await createTestBackend(t, { config: { ...config, databaseUrl } })
      const { base } = await startTestApi(t, gated)
      const { key } = await userAt(base)
      const unseen = await buildKey(backend)
      const providerHeader = { authorization: `Bearer ${providerKey('openai')}` }
      const call = (headers: Record<string, string>) =>
        createTestClient(base).post(path, asks('Where is the kettle?'), headers)
      const off = { 'x-memory-key': `${key}:off`, ...providerHeader }
      provider.respondAlways(respondJson(chatCompletion('Fine.')))
      t.teardown(() => provider.respondAlways())
      const seen = async () => (await call(off)).headers.get('x-memory-status') === 'off'
      await waitUntil('its key is looked up in time', seen)
      // A key of the last second would not be looked up.
      gated.verifiedKeys.noteChange()

      gate[state]()
      const modeOff = { 'x-memory-key': key, 'x-memory-mode': 'off', ...providerHeader }
      for (const { status, headers } of await Promise.all([off, modeOff].map(call))) {
        t.equal(status, 200)
        t.equal(headers.get('x-memory-status'), 'degraded')
      }
      const refused = {
        'with memory': { 'x-memory-key': key, ...providerHeader },
        'without a provider key': { 'x-memory-key': `${key}:off` },
        'with a key that was not seen': { 'x-memory-key': `${unseen}:off`, ...providerHeader },
      }
      const asked = provider.requests.length
      const answers = await Promise.all(Object.values(refused).map(call))
      t.same(
        answers.map(({ status }) => status),
        [503, 503, 503],
      )
      t.equal(provider.requests.length, asked)

      gate.open()
      await revokeKey(backend, key)
      // Until Postgres answers it passes as it was seen, or is refused for want of an answer.
      await waitUntil('a revoked key does not pass', async () => (await call(off)).status === 401)
    },
  )
}
