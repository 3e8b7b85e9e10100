import t from 'tap'
import { createTestClient, startJobWorkers } from '#test/support/start/api.ts'
import { chatCompletion } from '#test/support/doubles/chat-stream.ts'
import { insertMemories, readDocuments } from '#test/support/start/insert-memories.ts'
import { respondJson } from '#test/support/doubles/model-provider/answers.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { waitUntilIdle } from '#test/support/checks/observe-jobs.ts'
import { families } from '#test/support/samples/tool-sessions.ts'

/** A model is told what was known at a moment. */

const { provider, backend, base, newKey } = await startProxyFixture(t)
await startJobWorkers(backend)
provider.respondAlways(respondJson(chatCompletion('In a flat.')))

const day = 86_400_000
const begin = Date.parse('2025-03-01T12:00:00.000Z')

async function movedTwice(): Promise<string> {
  const key = await newKey()
  await insertMemories(backend, key, [
    { text: 'My flat is in Lisbon.', at: begin },
    { text: 'My flat is in Porto now.', at: begin + 10 * day },
  ])
  return key
}

const { path, body } = families.openai!
async function send(key: string, asOf: string | undefined, sent: object | string) {
  const response = await fetch(base + path, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-memory-key': key,
      ...(asOf !== undefined && { 'x-memory-as-of': asOf }),
    },
    body: typeof sent === 'string' ? sent : JSON.stringify({ model: 'openai/gpt-5', ...sent }),
  })
  const answer = await response.json()
  const received = provider.requests.at(-1)?.body.toString() ?? ''
  return {
    status: response.status,
    answer,
    received,
    isSafe: response.headers.get('x-memory-cache-safe'),
  }
}
const ask = { messages: [{ role: 'user', content: 'Where is my flat?' }] }

t.test('200: later memories are unknown, ages are counted from the moment', async t => {
  const key = `${await movedTwice()}:read`
  t.match((await send(key, undefined, ask)).received, /Lisbon[^]*Porto/)
  for (const asOf of [
    '2025-03-03',
    new Date(begin + 2 * day).toISOString(),
    `${begin + 2 * day}`,
  ]) {
    const { status, received } = await send(key, asOf, ask)
    t.equal(status, 200, asOf)
    t.match(received, /\[2 days ago · 2025-03-01 12:00 UTC · user\] My flat is in Lisbon/)
    t.notMatch(received, /Porto/)
  }
  t.notMatch((await send(key, '2025-02-28', ask)).received, /memory_context/)
})

t.test('400: what is no moment', async t => {
  const key = await movedTwice()
  const before = provider.requests.length
  for (const asOf of ['yesterday', '1740830400', '2025-02-30', '2025-03-01T25:00:00Z']) {
    const { status, answer } = await send(key, asOf, ask)
    t.equal(status, 400, asOf)
    t.match(answer, { error: { message: /X-Memory-As-Of/ } })
  }
  t.equal(provider.requests.length, before, 'nothing is sent')
})

t.test('what is said is stored today', async t => {
  const key = await movedTwice()
  const startedAt = Date.now()
  await send(key, '2025-03-03', ask)
  await waitUntilIdle(backend)
  const { body: listed } = await createTestClient(base, key).get('/v1/memory/list')
  t.equal(listed.items.length, 4)
  const asked = (await readDocuments(backend, key)).find(({ text }) => text === 'Where is my flat?')
  t.ok(asked!.at.getTime() >= startedAt - 1_000)
})

t.test('a loop with the header is one prefix; blocks of other moments are not in it', async t => {
  const key = `${await newKey()}:read`
  await insertMemories(backend, key.slice(0, -5), [
    { text: 'The bicycle of my sister is number 7.', at: begin },
    { text: 'The bicycle of my sister is number 8 now.', at: begin + 10 * day },
  ])
  const topics = ['bicycle', 'bicycle']
  const call = (asOf: string | undefined, turn: number, step: number) =>
    send(key, asOf, body(topics, turn, step))
  const first = await call('2025-03-03', 0, 0)
  t.match(first.received, 'number 7')
  for (const step of [1, 2, 3]) {
    const later = await call('2025-03-03', 0, step)
    t.equal(later.isSafe, 'true')
    t.ok(later.received.startsWith(first.received.slice(0, first.received.lastIndexOf(']'))))
  }
  await call(undefined, 0, 0)
  t.match((await call(undefined, 0, 3)).received, 'number 8')
  const next = await call('2025-03-03', 1, 0)
  t.match(next.received, 'number 7')
  t.notMatch(next.received, 'number 8', 'not in the block of the earlier turn')
})
