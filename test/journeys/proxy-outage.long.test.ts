import t from 'tap'
import { waitUntilSettled } from '#test/support/checks/exchange-journal.ts'
import { startFaultProxy } from '#test/support/doubles/fault-proxy.ts'
import {
  createTestBackend,
  createTestConfig,
  defaultRecallTimeout,
} from '#test/support/start/backend.ts'
import { modelNames } from '#test/support/doubles/model-provider/clients.ts'
import { defaultReply } from '#test/support/doubles/model-provider/fixtures.ts'
import { createProxyAccount } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { startModelProvider } from '#test/support/doubles/model-provider.ts'
import { startWeb, startWorker } from '#test/support/start/processes.ts'
import { readDocuments } from '#test/support/start/insert-memories.ts'

t.setTimeout(0)

const say = async (base: string, key: string, content: string) => {
  const begun = performance.now()
  const response = await fetch(`${base}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: modelNames.openai, messages: [{ role: 'user', content }] }),
  })
  const text = await response.text()
  const { status, headers } = response
  return { status, headers, text, ms: performance.now() - begun }
}

t.test('200: MongoDB is out of reach: calls pass, the turns are stored afterwards', async t => {
  const provider = await startModelProvider(t)
  const real = await createTestConfig(t, { ...provider.env, ...defaultRecallTimeout })
  const gate = await startFaultProxy(t, real.mongodbUri)
  const backend = await createTestBackend(t, { config: real })
  const config = { ...real, mongodbUri: gate.url }
  const [web] = await Promise.all([
    startWeb(t, config, provider.env),
    startWorker(t, config, provider.env),
  ])
  const { newKey } = await createProxyAccount(backend, web.base)
  const key = await newKey()
  t.equal((await say(web.base, key, 'The kettle is red.')).status, 200)
  await waitUntilSettled(backend)

  const said: string[] = ['The kettle is red.']
  for (const how of ['shut', 'freeze'] as const) {
    // A vault that no process holds in memory has to be read.
    const cold = await newKey()
    gate[how]()
    const { status, headers, ms, text } = await say(web.base, cold, 'What colour is the kettle?')
    t.equal(status, 200, `${how}: ${text}`)
    t.match(text, 'Noted')
    t.equal(headers.get('x-memory-status'), 'degraded', how)
    t.ok(ms < 30_000, `${how}: after ${ms.toFixed(0)} ms`)
    said.push(`Said while ${how}.`)
    t.equal((await say(web.base, key, said.at(-1)!)).status, 200, how)
    gate.open()
    await waitUntilSettled(backend)
    t.equal((await readDocuments(backend, cold)).length, 2, `${how}: stored once it is back`)
  }
  const texts = (await readDocuments(backend, key)).map(({ text }) => text)
  t.same(texts.toSorted(), [...said, ...said.map(() => defaultReply)].toSorted(), 'each once')
})
