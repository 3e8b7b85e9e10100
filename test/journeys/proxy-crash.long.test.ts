import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { sweepAll } from '#workers/sweep-all.ts'
import type { Backend } from '#shared/backend.ts'
import { startJobWorkers } from '#test/support/api.ts'
import { createTestBackend, createTestConfig } from '#test/support/backend.ts'
import { waitUntilSettled } from '#test/support/exchange-journal.ts'
import { neverRespond, stallAfter } from '#test/support/model-provider/answers.ts'
import { modelNames } from '#test/support/model-provider/clients.ts'
import { defaultReply } from '#test/support/model-provider/fixtures.ts'
import { createProxyAccount } from '#test/support/model-provider/proxy-fixture.ts'
import { startModelProvider } from '#test/support/model-provider.ts'
import { startWeb } from '#test/support/processes.ts'
import { waitUntil } from '#test/support/wait-until.ts'
import { readDocuments } from '#test/support/insert-memories.ts'
import { ageRows } from '#test/support/alter.ts'
import { countRows } from '#test/support/observe.ts'

t.setTimeout(0)

const provider = await startModelProvider(t)
const config = await createTestConfig(t, provider.env)
const backend = await createTestBackend(t, { config })
// Of this file, not of the test that starts it: the next one goes on with it.
const start = () => startWeb(t, config, provider.env)
let web = await start()
const account = await createProxyAccount(backend, web.base)
const keys = await Promise.all(Array.from({ length: 14 }, () => account.newKey()))
await startJobWorkers(backend)

const piece = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'So far ' } }] })}\n\n`

const call = (key: string, content: string, stream: boolean) =>
  fetch(`${web.base}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({
      model: modelNames.openai,
      stream,
      messages: [{ role: 'user', content }],
    }),
  })

const textsOf = async (key: string): Promise<string[]> =>
  (await readDocuments(backend, key)).map(({ text }) => text).toSorted()

/** As if two minutes had gone by without a sign of life. */
const growOld = (backend: Backend) => ageRows(backend, 'open_exchanges', '3 minutes')

const openRows = (backend: Backend): Promise<number> => countRows(backend, 'open_exchanges')

for (const stream of [true, false]) {
  const when = stream ? 'in the middle of a stream' : 'while the model is silent'
  t.test(`the API is killed ${when}: what the user said is stored, once`, async t => {
    const vaults = keys.splice(0, 6)
    provider.respondAlways(stream ? stallAfter([piece]) : neverRespond)
    const before = provider.requests.length
    const calls = vaults.map(async (key, index) => {
      const response = await call(key, `Said to number ${index}.`, stream)
      const reader = response.body!.getReader()
      await reader.read()
      await reader.read()
    })
    const broken = Promise.allSettled(calls)
    await waitUntil('all are under way', () => provider.requests.length === before + vaults.length)
    // While the provider works, and before anything of its answer is passed on.
    await waitUntil('all is written down', async () => (await openRows(backend)) === vaults.length)
    web.kill('SIGKILL')
    t.ok((await broken).every(({ status }) => status === 'rejected'))
    provider.respondAlways()

    await sweepAll(backend)
    t.equal(await openRows(backend), vaults.length, 'another process may still be at it')
    await growOld(backend)
    await Promise.all([sweepAll(backend), sweepAll(backend)])
    await sweepAll(backend)
    await waitUntilSettled(backend)
    for (const [index, key] of vaults.entries()) {
      t.same(await textsOf(key), [`Said to number ${index}.`])
    }
    t.equal(await openRows(backend), 0)
    web = await start()
  })
}

t.test(
  'a call still under way when it is taken for dead stores its answer later, once',
  async t => {
    const key = keys.pop()!
    const { promise: goOn, resolve: finish } = Promise.withResolvers<void>()
    provider.respondNext(async (_seen, answer) => {
      answer.head(200, { 'content-type': 'text/event-stream' })
      await answer.write(piece)
      await goOn
      await answer.write(piece.replace('So far ', 'and on.'))
      await answer.write('data: [DONE]\n\n')
      answer.end()
    })
    const answered = call(key, 'Think long.', true).then(response => response.text())
    await waitUntil('it is written down', async () => (await openRows(backend)) === 1)
    // The process that serves it may renew it in between.
    await waitUntil('it is taken for dead', async () => {
      await growOld(backend)
      await sweepAll(backend)
      await waitUntilSettled(backend)
      return (await textsOf(key)).length > 0
    })
    t.same(await textsOf(key), ['Think long.'])
    finish()
    t.match(await answered, 'and on.')
    await waitUntil('the answer is stored', async () => (await textsOf(key)).length === 2)
    await sweepAll(backend)
    await waitUntilSettled(backend)
    t.same(await textsOf(key), ['So far and on.', 'Think long.'])
  },
)

t.test('the API is killed under load: an exchange whose answer ended is stored whole', async t => {
  const key = keys.pop()!
  const whole = new Set<string>()
  let sent = 0
  const stopped = new AbortController()
  const lane = async (): Promise<void> => {
    while (!stopped.signal.aborted) {
      const content = `Load ${++sent}.`
      await call(key, content, sent % 2 === 0)
        .then(async response => {
          const text = await response.text()
          if (response.status === 200 && text.length > 0) whole.add(content)
        })
        .catch(() => delay(50))
    }
  }
  const lanes = Array.from({ length: 6 }, lane)
  for (let kill = 0; kill < 2; kill++) {
    const enough = whole.size + 25
    await waitUntil('it is under load', () => whole.size > enough)
    web.kill('SIGKILL')
    await web.exited
    web = await start()
  }
  const enough = whole.size + 10
  await waitUntil('it goes on', () => whole.size > enough)
  stopped.abort()
  await Promise.all(lanes)
  await waitUntilSettled(backend)
  await growOld(backend)
  await sweepAll(backend)
  await waitUntilSettled(backend)

  const texts = await textsOf(key)
  const said = texts.filter(text => text.startsWith('Load'))
  t.comment(`${sent} calls, ${whole.size} seen to their end, ${said.length} stored, 2 kills`)
  t.equal(new Set(said).size, said.length, 'nothing is stored twice')
  t.same(
    [...whole].filter(text => !said.includes(text)),
    [],
    'nothing is lost',
  )
  t.ok(texts.length - said.length >= whole.size, 'answers too')
  t.ok(
    texts.every(
      text => text === defaultReply || text.startsWith('Load') || defaultReply.startsWith(text),
    ),
  )
})
