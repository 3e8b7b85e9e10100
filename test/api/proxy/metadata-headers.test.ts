import t from 'tap'
import { createTestClient, startJobWorkers } from '#test/support/start/api.ts'
import { waitUntilSettled } from '#test/support/checks/exchange-journal.ts'
import { readDocuments } from '#test/support/start/insert-memories.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { ageRows } from '#test/support/checks/alter.ts'
import { countRows } from '#test/support/checks/observe.ts'
import { callModel, proxyDialects } from '#test/support/samples/proxy-dialects.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { sweepAll } from '#workers/sweep-all.ts'

const { backend, base, owner, provider, newKey } = await startProxyFixture(t)
// Not for the sweep, which comes every minute by itself: what it finds is counted here.
await startJobWorkers(backend, 'ingest')

/** Header values as Node sends them: UTF-8 in Latin-1. */
const headerOf = (value: unknown): string =>
  Buffer.from(JSON.stringify(value), 'utf8').toString('latin1')

const openai = proxyDialects[0]!

async function say(key: string, content: string, headers: Record<string, string> = {}) {
  const response = await callModel(base, key, openai, content, { headers })
  return { status: response.status, text: await response.text() }
}

const sent = (): string => provider.requests.at(-1)!.body.toString()

// The first call of a process is slow: recall would give up.
await say(await newKey(), 'Hello.')

t.test('200: fields of a call are those of its memories, and filter what is recalled', async t => {
  const key = await newKey()
  const planner = { agent_id: 'planner', team: 'Zürich' }
  await say(key, 'My locker has the number forty.', { 'x-memory-metadata': headerOf(planner) })
  t.notOk(provider.requests.at(-1)!.headers.some(([name]) => /^x-memory/i.test(name)))
  await say(key, 'My locker is painted green.', {
    'x-memory-metadata': headerOf({ agent_id: 'critic' }),
  })
  await waitUntilSettled(backend)
  const client = createTestClient(base, key)
  const { body } = await client.post('/v1/memory/search', {
    query: 'locker',
    limit: 10,
    metadata: { team: 'Zürich' },
  })
  t.ok(body.memories.length > 0)
  for (const { metadata } of body.memories) t.same(metadata, planner)

  const ask = (filter: unknown) =>
    say(key, 'What do you know of my locker?', {
      'x-memory-store': 'false',
      'x-memory-filter': headerOf(filter),
    })
  t.equal((await ask({ agent_id: 'planner' })).status, 200)
  t.match(sent(), 'number forty')
  t.notMatch(sent(), 'painted green')
  t.equal((await ask({ agent_id: ['critic', 'writer'] })).status, 200)
  t.notMatch(sent(), 'number forty', 'the same turn under another filter is another recall')
  t.match(sent(), 'painted green')
  t.equal((await ask({ agent_id: 'writer' })).status, 200)
  t.notMatch(sent(), /number forty|painted green/)
  const not = (fields: object) => ({ filter: { not: { metadata: fields } } })
  t.equal((await ask(not({ agent_id: 'critic' }))).status, 200)
  t.match(sent(), 'number forty')
  t.notMatch(sent(), 'painted green')
  const both = { ...not({ team: { exists: true } }), agent_id: ['critic', 'planner'] }
  t.equal((await ask(both)).status, 200)
  t.notMatch(sent(), 'number forty')
  t.match(sent(), 'painted green')
})

t.test('200: fields that a client sends as Latin-1 are stored as they were written', async t => {
  const key = await newKey()
  const value = JSON.stringify({ topic: 'Café' })
  t.equal((await say(key, 'The cups are blue.', { 'x-memory-metadata': value })).status, 200)
  await waitUntilSettled(backend)
  const rows = await readDocuments(backend, key)
  t.ok(rows.length > 0)
  for (const { metadata } of rows) t.same(metadata, ['topic="Café"'])
})

t.test('200: a call whose process died before the answer keeps its fields', async t => {
  const key = await newKey()
  const held = Promise.withResolvers<void>()
  provider.respondNext(() => held.promise)
  const control = new AbortController()
  const asked = callModel(base, key, openai, 'My boat is called Iris.', {
    signal: control.signal,
    headers: { 'x-memory-metadata': headerOf({ run_id: 7, draft: true }) },
  }).catch(() => undefined)
  await waitUntil('opened', async () => (await countRows(backend, 'open_exchanges')) === 1)
  // The call is still under way: its row is renewed every half a minute, perhaps between the two.
  await waitUntil('swept', async () => {
    await ageRows(backend, 'open_exchanges', '3 minutes')
    return (await sweepAll(backend)).exchanges === 1
  })
  await waitUntil('stored', async () => (await readDocuments(backend, key)).length === 1)
  t.same((await readDocuments(backend, key))[0]!.metadata, ['draft=true', 'run_id=7'])
  control.abort()
  held.resolve()
  await asked
})

t.test('400: what is no metadata, before the provider is asked', async t => {
  const key = await newKey()
  const calls = provider.requests.length
  for (const name of ['X-Memory-Metadata', 'X-Memory-Filter']) {
    for (const value of ['planner', '[]', '{"a":null}', '{"a b":1}', '{"a":{"b":1}}', '"a"', '{']) {
      const { status, text } = await say(key, 'Hello.', { [name]: value })
      t.equal(status, 400, value)
      t.match(text, name)
    }
  }
  const long = headerOf({ a: 'x'.repeat(257) })
  t.match(await say(key, 'Hello.', { 'x-memory-metadata': long }), { status: 400 })
  t.equal(provider.requests.length, calls)
})

t.test('400: fields that the redaction policy blocks; others are stored as it wants', async t => {
  const key = await newKey()
  const note = { note: 'a\u0000b, paid with 4111 1111 1111 1111' }
  const tell = () => say(key, 'A note.', { 'x-memory-metadata': headerOf(note) })
  const setPolicy = (mode: string) =>
    owner.send('PUT', '/v1/account/policy', { body: { redaction: { mode } } })
  t.equal((await setPolicy('redact')).status, 200)
  t.equal((await tell()).status, 200)
  await waitUntilSettled(backend)
  const rows = await readDocuments(backend, key)
  t.ok(rows.length > 0)
  for (const { metadata } of rows) {
    t.match(metadata, [/^note="a\uFFFDb, paid with /])
    t.notMatch(metadata, [/4111/])
  }
  t.equal((await setPolicy('block')).status, 200)
  t.match(await tell(), { status: 400, text: /X-Memory-Metadata|metadata\.note/ })
})
