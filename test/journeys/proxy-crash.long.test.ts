import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { sweepAll } from '#workers/sweep-all.ts'
import { startJobWorkers, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend, createTestConfig } from '#test/support/start/backend.ts'
import { chatCompletion, chatCompletionEvents } from '#test/support/doubles/chat-stream.ts'
import { waitUntilSettled } from '#test/support/checks/exchange-journal.ts'
import {
  neverRespond,
  respondJson,
  respondWith,
  stallAfter,
} from '#test/support/doubles/model-provider/answers.ts'
import { modelNames } from '#test/support/doubles/model-provider/clients.ts'
import { defaultReply } from '#test/support/doubles/model-provider/fixtures.ts'
import { createProxyAccount } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { startModelProvider } from '#test/support/doubles/model-provider.ts'
import { startWeb } from '#test/support/start/processes.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { readDocuments } from '#test/support/start/insert-memories.ts'
import { ageRows } from '#test/support/checks/alter.ts'
import { releaseIdempotencyKeys } from '#test/support/checks/alter-jobs.ts'
import { countRows } from '#test/support/checks/observe.ts'

/** The process that serves a call ends before the answer does. */

t.setTimeout(0)

const provider = await startModelProvider(t)
const config = await createTestConfig(t, provider.env)
const backend = await createTestBackend(t, { config })
// The process belongs to this file, not to the test that starts it: the next one goes on with it.
const start = () => startWeb(t, config, provider.env)
let web = await start()
/** Another process, which is not killed. */
const { base: other } = await startTestApi(t, backend)
const { newKey } = await createProxyAccount(backend, other)
await startJobWorkers(backend)

const half = stallAfter(chatCompletionEvents(['So far '], { end: false }))

type Call = { stream: boolean; at?: string; headers?: Record<string, string> }

const call = (key: string, content: string, { stream, at = web.base, headers }: Call) =>
  fetch(`${at}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${key}`,
      ...headers,
    },
    body: JSON.stringify({
      model: modelNames.openai,
      stream,
      messages: [{ role: 'user', content }],
    }),
  })

async function killWeb(): Promise<void> {
  web.kill('SIGKILL')
  await web.exited
}

const textsOf = async (key: string): Promise<string[]> =>
  (await readDocuments(backend, key)).map(({ text }) => text).toSorted()

/** As if two minutes had gone by without a sign of life. */
const growOld = () => ageRows(backend, 'open_exchanges', '3 minutes')

const openRows = (): Promise<number> => countRows(backend, 'open_exchanges')

t.test('the API is killed under way: what the user said is stored, once', async t => {
  const kinds = [true, true, true, false, false, false]
  const vaults = await Promise.all(kinds.map(newKey))
  const before = provider.requests.length
  provider.respondAlways((seen, answer) =>
    (seen.body.includes('"stream":true') ? half : neverRespond)(seen, answer),
  )
  const calls = vaults.map(async (key, index) => {
    const response = await call(key, `Said to number ${index}.`, { stream: kinds[index]! })
    const reader = response.body!.getReader()
    await reader.read()
    await reader.read()
  })
  const broken = Promise.allSettled(calls)
  await waitUntil('all are under way', () => provider.requests.length === before + vaults.length)
  // While the provider works, and before anything of its answer is passed on.
  await waitUntil('all is written down', async () => (await openRows()) === vaults.length)
  await killWeb()
  t.ok((await broken).every(({ status }) => status === 'rejected'))
  provider.respondAlways()

  await sweepAll(backend)
  t.equal(await openRows(), vaults.length, 'another process may still be at it')
  await growOld()
  await Promise.all([sweepAll(backend), sweepAll(backend)])
  await sweepAll(backend)
  await waitUntilSettled(backend)
  for (const [index, key] of vaults.entries())
    t.same(await textsOf(key), [`Said to number ${index}.`])
  t.equal(await openRows(), 0)
  web = await start()
})

t.test('killed, and sent again to another process: said once', async t => {
  const key = await newKey()
  const before = provider.requests.length
  provider.respondNext(half)
  const response = await call(key, 'Remember the bread.', { stream: true })
  await response.body!.getReader().read()

  const keyed = { stream: false, headers: { 'idempotency-key': 'one' } }
  const said = 'Remember the salt.'
  // How long after the first try the second one comes, by the age of the turn without an answer.
  const again = await Promise.all([3, 30].map(async minutes => ({ minutes, key: await newKey() })))
  provider.respondNext(neverRespond, neverRespond)
  const first = again.map(({ key }) => call(key, said, keyed).catch(() => {}))
  await waitUntil('all are under way', () => provider.requests.length === before + 3)
  await waitUntil('all is written down', async () => (await openRows()) === 3)
  await killWeb()
  await Promise.all(first)

  provider.respondNext(respondWith(chatCompletionEvents(['Whole.'])))
  const whole = await call(key, 'Remember the bread.', { stream: true, at: other })
  t.match(await whole.text(), 'Whole.')
  await growOld()
  t.match(await sweepAll(backend), { exchanges: 3 })
  await waitUntilSettled(backend)
  t.same(await textsOf(key), ['Remember the bread.', 'Whole.'])

  const repeat = (key: string) => call(key, said, { ...keyed, at: other })
  for (const { key } of again) t.equal((await repeat(key)).status, 409, 'until it must be dead')
  await releaseIdempotencyKeys(backend)
  const answer = { choices: [{ message: { content: 'Salt it is.' } }] }
  for (const { key, minutes } of again) {
    await ageRows(backend, 'unanswered_turns', `${minutes} minutes`)
    provider.respondNext(respondJson(chatCompletion('Salt it is.')))
    t.match(await (await repeat(key)).json(), answer)
    await waitUntilSettled(backend)
    t.same(await textsOf(key), [said, 'Salt it is.'], `after ${minutes} minutes`)
    t.match(await (await repeat(key)).json(), answer)
  }
  t.equal(await openRows(), 0)
  web = await start()
})

t.test('a call under way that is taken for dead stores its answer later, once', async t => {
  const key = await newKey()
  const held = Promise.withResolvers<void>()
  const [begin, ...rest] = chatCompletionEvents(['So far ', 'and on.'])
  provider.respondNext(async (_seen, answer) => {
    answer.head(200, { 'content-type': 'text/event-stream' })
    await answer.write(begin!)
    await held.promise
    for (const chunk of rest) await answer.write(chunk)
    answer.end()
  })
  const answered = call(key, 'Think long.', { stream: true }).then(response => response.text())
  await waitUntil('it is written down', async () => (await openRows()) === 1)
  // The process that serves it may renew it in between.
  await waitUntil('it is taken for dead', async () => {
    await growOld()
    await sweepAll(backend)
    await waitUntilSettled(backend)
    return (await textsOf(key)).length > 0
  })
  t.same(await textsOf(key), ['Think long.'])
  held.resolve()
  t.match(await answered, 'and on.')
  await waitUntil('the answer is stored', async () => (await textsOf(key)).length === 2)
  await sweepAll(backend)
  await waitUntilSettled(backend)
  t.same(await textsOf(key), ['So far and on.', 'Think long.'])
})

t.test('the API is killed under load: an exchange whose answer ended is stored whole', async t => {
  const key = await newKey()
  const whole = new Set<string>()
  let sent = 0
  const stopped = new AbortController()
  const lane = async (): Promise<void> => {
    while (!stopped.signal.aborted) {
      const content = `Load ${++sent}.`
      await call(key, content, { stream: sent % 2 === 0 })
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
    await killWeb()
    web = await start()
  }
  const enough = whole.size + 10
  await waitUntil('it goes on', () => whole.size > enough)
  stopped.abort()
  await Promise.all(lanes)
  await waitUntilSettled(backend)
  await growOld()
  await sweepAll(backend)
  await waitUntilSettled(backend)

  const texts = await textsOf(key)
  const said = texts.filter(text => text.startsWith('Load'))
  t.comment(`${sent} calls, ${whole.size} seen to their end, ${said.length} stored, 2 kills`)
  t.equal(new Set(said).size, said.length, 'nothing is stored twice')
  const lost = [...whole].filter(text => !said.includes(text))
  t.same(lost, [], 'nothing is lost')
  t.ok(texts.length - said.length >= whole.size, 'answers too')
  t.ok(
    texts.every(
      text => text === defaultReply || text.startsWith('Load') || defaultReply.startsWith(text),
    ),
  )
})

t.test('a web process that is told to stop stores what it has heard', async t => {
  const key = await newKey()
  const held = Promise.withResolvers<void>()
  const chunks = chatCompletionEvents(['To the ', 'end.'])
  provider.respondNext(async (_, answer) => {
    answer.head(200, { 'content-type': 'text/event-stream' })
    await answer.write(chunks[0]!)
    await held.promise
    for (const chunk of chunks.slice(1)) await answer.write(chunk)
    answer.end()
  })
  const response = await call(key, 'Tell me all.', { stream: true })
  web.kill('SIGTERM')
  await waitUntil('it drains', () => web.output().includes('process.draining'))
  held.resolve()
  t.equal(await response.text(), chunks.join(''))
  t.match(await web.exited, { code: 0 })
  await waitUntilSettled(backend)
  t.same(await textsOf(key), ['Tell me all.', 'To the end.'])
})
