import t from 'tap'
import { buildKey, clientOf, testApi, workOn } from '#test/support/api.ts'
import { testBackend, testConfig } from '#test/support/backend.ts'
import { completion } from '#test/support/chat-stream.ts'
import { gateBefore } from '#test/support/gate.ts'
import { answersJson } from '#test/support/model-provider/answers.ts'
import { modelProvider, providerKey } from '#test/support/model-provider.ts'
import { until } from '#test/support/until.ts'
import { documentsOf } from '#test/support/vault.ts'

const provider = await modelProvider(t)
const config = await testConfig(t, provider.env)
const backend = await testBackend(t, { config })
await workOn(backend, 'ingest')

const path = '/v1/chat/completions'
const asks = (content: string) => ({
  model: 'openai/gpt-5',
  messages: [{ role: 'user', content }],
})

async function userAt(base: string) {
  const key = await buildKey(backend)
  const headers = { 'x-memory-key': key, authorization: `Bearer ${providerKey('openai')}` }
  const ask = (content: string) => clientOf(base).post(path, asks(content), headers)
  const stored = (count: number) =>
    until(`${count} are stored`, async () => (await documentsOf(backend, key)).length === count)
  return { key, ask, stored }
}

for (const state of ['freeze', 'shut'] as const) {
  t.test(`MongoDB is away (${state}): a call goes on without memory, and is stored`, async t => {
    const gate = await gateBefore(t, config.mongodbUri)
    const gated = await testBackend(t, { config: { ...config, mongodbUri: gate.url } })
    const { base } = await testApi(t, gated)
    const { ask, stored } = await userAt(base)
    provider.always(answersJson(completion('Fine.')))
    gate[state]()
    const begun = performance.now()
    const { status, headers } = await ask('Is it there?')
    const ms = performance.now() - begun
    t.equal(status, 200)
    t.equal(headers.get('x-memory-status'), 'degraded')
    t.ok(ms < 4_000, `${ms} ms`)
    await stored(2)
    provider.always()
    if (state === 'freeze') return
    gate.open()
    provider.always(answersJson(completion('Fine.')))
    let asked = 1
    await until('it is back', async () => {
      asked++
      return (await ask('Is it there now?')).headers.get('x-memory-status') !== 'degraded'
    })
    await stored(asked * 2)
    provider.always()
  })
}

t.test(
  '503: Postgres is away before a call; during it the answer is whole and stored later',
  async t => {
    const gate = await gateBefore(t, config.databaseUrl)
    const gated = await testBackend(t, { config: { ...config, databaseUrl: gate.url } })
    const { base } = await testApi(t, gated)
    const { key, ask, stored } = await userAt(base)
    let release = (): void => {}
    const held = new Promise<void>(resolve => (release = resolve))
    provider.next(async (seen, answer) => {
      await held
      await answersJson(completion('Patience.'))(seen, answer)
    })
    const asked = provider.seen.length
    const answering = ask('Are you there?')
    await until('the provider is asked', () => provider.seen.length > asked)
    gate.shut()
    release()
    const { status, body } = await answering
    t.equal(status, 200)
    t.equal(body.choices[0].message.content, 'Patience.')
    t.match(await ask('again'), { status: 503, headers: { get: Function } })
    t.equal(provider.seen.length, asked + 1)
    t.equal((await documentsOf(backend, key)).length, 0)
    gate.open()
    await stored(2)
    t.match(
      (await documentsOf(backend, key)).map(({ text }) => text),
      ['Are you there?', 'Patience.'],
    )
  },
)
