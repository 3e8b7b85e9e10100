import t from 'tap'
import { settled } from '#test/support/journal.ts'
import { gateBefore } from '#test/support/gate.ts'
import { testApi } from '#test/support/api.ts'
import { testBackend, testConfig } from '#test/support/backend.ts'
import { models } from '#test/support/model-provider/clients.ts'
import { reply } from '#test/support/model-provider/fixtures.ts'
import { accountOn } from '#test/support/model-provider/world.ts'
import { modelProvider } from '#test/support/model-provider.ts'
import { startWeb, startWorker } from '#test/support/processes.ts'
import { until } from '#test/support/until.ts'
import { documentsOf } from '#test/support/vault.ts'

t.setTimeout(0)

const say = async (base: string, key: string, content: string) => {
  const begun = performance.now()
  const response = await fetch(`${base}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: models.openai, messages: [{ role: 'user', content }] }),
  })
  const text = await response.text()
  const { status, headers } = response
  return { status, headers, text, ms: performance.now() - begun }
}

t.test('200: MongoDB is out of reach: calls pass, the turns are stored afterwards', async t => {
  const provider = await modelProvider(t)
  const real = await testConfig(t, provider.env)
  const gate = await gateBefore(t, real.mongodbUri)
  const backend = await testBackend(t, { config: real })
  const config = { ...real, mongodbUri: gate.url }
  const [web] = await Promise.all([
    startWeb(t, config, provider.env),
    startWorker(t, config, provider.env),
  ])
  const { newKey } = await accountOn(backend, web.base)
  const key = await newKey()
  t.equal((await say(web.base, key, 'The kettle is red.')).status, 200)
  await settled(backend, 20_000)

  const said: string[] = ['The kettle is red.']
  for (const how of ['shut', 'freeze'] as const) {
    // A vault that no process holds in memory has to be read.
    const cold = await newKey()
    gate[how]()
    const { status, headers, ms, text } = await say(web.base, cold, 'What colour is the kettle?')
    t.equal(status, 200, `${how}: ${text}`)
    t.match(text, 'Noted')
    t.equal(headers.get('x-memory-status'), 'degraded', how)
    t.ok(ms < 4_000, `${how}: after ${ms.toFixed(0)} ms`)
    said.push(`Said while ${how}.`)
    t.equal((await say(web.base, key, said.at(-1)!)).status, 200, how)
    gate.open()
    await settled(backend, 60_000)
    t.equal((await documentsOf(backend, cold)).length, 2, `${how}: stored once it is back`)
  }
  const texts = (await documentsOf(backend, key)).map(({ text }) => text)
  t.same(texts.toSorted(), [...said, ...said.map(() => reply)].toSorted(), 'each once')
})

t.test('503: Postgres is out of reach: nobody is let in, nothing is asked', async t => {
  const provider = await modelProvider(t)
  const real = await testConfig(t, provider.env)
  const gate = await gateBefore(t, real.databaseUrl)
  const backend = await testBackend(t, { config: { ...real, databaseUrl: gate.url } })
  const { base } = await testApi(t, backend)
  const { newKey } = await accountOn(backend, base)
  const key = await newKey()
  gate.shut()
  const asked = provider.seen.length
  const { status, headers, text } = await say(base, key, 'Hello?')
  t.equal(status, 503)
  t.match(headers.get('retry-after'), /^\d+$/)
  t.match(JSON.parse(text), { error: /out of reach/ })
  t.equal(provider.seen.length, asked)
  gate.open()
  await until(
    'it serves again',
    async () => (await say(base, key, 'Hello.')).status === 200,
    15_000,
  )
})
