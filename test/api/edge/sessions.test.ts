import t from 'tap'
import {
  buildKey,
  createTestClient,
  startTestApi,
  startJobWorkers,
  type TestClient,
} from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'

const backend = await createTestBackend(t)
await startJobWorkers(backend)
const api = await startTestApi(t, backend)

const inCore = 'the piano stands in the hall'
const inLesson = 'the piano teacher wants scales'
const inShop = 'the piano shop closes at six'

const tell = (client: TestClient, content: string, session?: string) =>
  client.post(
    '/v1/memory/ingest?wait=true',
    { messages: [{ role: 'user', content }] },
    session === undefined ? {} : { 'x-session-id': session },
  )

async function toldClient(): Promise<TestClient> {
  const client = createTestClient(api.base, await buildKey(backend))
  await tell(client, inCore)
  await tell(client, inLesson, 'lesson')
  await tell(client, inShop, 'shop')
  return client
}

const textsIn = async (
  client: TestClient,
  session?: string,
  body: object = {},
): Promise<string[]> => {
  const headers = session === undefined ? {} : { 'x-session-id': session }
  const asked = { query: 'where is the piano', limit: 50, ...body }
  const answer = await client.post('/v1/memory/search', asked, headers)
  return answer.body.memories.map((row: { content: string }) => row.content).toSorted()
}

t.test('200: a search sees the core vault, or one session, and never another', async t => {
  const client = await toldClient()
  t.same(await textsIn(client), [inCore])
  t.same(await textsIn(client, 'lesson'), [inLesson])
  t.same(await textsIn(client, undefined, { session_id: 'shop' }), [inShop])
  t.same(await textsIn(client, 'nothing here'), [])
  const { body } = await client.post(
    '/v1/memory/search',
    { query: 'piano', limit: 5 },
    { 'x-session-id': 'lesson' },
  )
  t.match(body, { sessionId: 'lesson', memories: [{ source: 'session' }] })
})

t.test('200: prepare recalls core and session together, and no other session', async t => {
  const client = await toldClient()
  const asked = { messages: [{ role: 'user', content: 'where is the piano, and the teacher?' }] }
  const plain = (await client.post('/v1/memory/prepare', asked)).body
  t.match(plain.context, inCore)
  t.notMatch(plain.context, inLesson)
  const both = await client.post('/v1/memory/prepare', { ...asked, session_id: 'lesson' })
  t.match(both.body.context, inCore)
  t.match(both.body.context, inLesson)
  t.notMatch(both.body.context, inShop)
})

t.test('200: the list leaves sessions out, the stats count them', async t => {
  const client = await toldClient()
  const listed = await client.get('/v1/memory/list')
  t.match(listed.body, { items: [{ text: inCore }], tier_counts: { raw: 1 } })
  t.equal(listed.body.items.length, 1)
  t.match((await client.get('/v1/memory/stats')).body, { memories: 3 })
})

t.test('200: warm-up loads the place it names', async t => {
  const client = await toldClient()
  await tell(client, 'another one for the lesson', 'lesson')
  const warm = async (session?: string) => {
    const headers = session === undefined ? {} : { 'x-session-id': session }
    return (await client.post('/v1/memory/warmup', {}, headers)).body.memories_loaded
  }
  t.same([await warm(), await warm('lesson'), await warm('nothing')], [1, 2, 0])
})

t.test('200: debt, checkout, transfer and graft are about the core vault', async t => {
  const client = await toldClient()
  const found = await client.post('/v1/memory/search', { query: 'piano', limit: 1 })
  t.equal(found.body.reflection.unconsolidated.raw.units, 1)
  const batch = await client.post('/v1/memory/consolidate/checkout', {
    tier: 1,
    session_id: 'lesson',
  })
  t.match(batch.body, { count: 1, memories: [{ text: inCore }] })

  const destination = await buildKey(backend)
  for (const [path, body] of [
    ['/v1/memory/transfer', {}],
    ['/v1/memory/graft', { queries: ['piano'], threshold: 0 }],
  ] as const) {
    const asked = { destination_key: destination, dry_run: true, ...body }
    const preview = await client.post(path, asked)
    t.match(preview.body, { count: 1, memories: [{ snippet: inCore }] }, path)
  }
})

t.test('200: an upload goes into the session it names', async t => {
  const client = await toldClient()
  const line = JSON.stringify({ content: 'the piano was tuned' })
  const answer = await client.send('POST', '/v1/memory/upload', {
    body: line,
    headers: { 'content-type': 'application/x-ndjson', 'x-session-id': 'lesson' },
  })
  t.match(answer, { status: 200, body: { vault: 'session' } })
  t.same(await textsIn(client), [inCore])
  t.same(await textsIn(client, 'lesson'), [inLesson, 'the piano was tuned'])
})

t.test('200: clearing a session leaves the core vault and other sessions', async t => {
  const client = await toldClient()
  const headers = { 'x-session-id': 'lesson' }
  const cleared = await client.send('DELETE', '/v1/memory', { headers })
  t.match(cleared, { status: 200, body: { session_id: 'lesson', deleted: 1 } })
  t.same(await textsIn(client, 'lesson'), [])
  t.same(await textsIn(client), [inCore])
  t.same(await textsIn(client, 'shop'), [inShop])
  await tell(client, inLesson, 'lesson')
  t.same(await textsIn(client, 'lesson'), [inLesson], 'the session may be used again')
})

t.test('200: any name is a session of its own', async t => {
  const client = createTestClient(api.base, await buildKey(backend))
  const names = ['core', 'null', '0', ' x', 'Lesson', 'lesson', 'größe', '试', '__proto__', '$ne']
  for (const session_id of names) {
    const messages = [{ role: 'user', content: `the piano of ${session_id}` }]
    const { status } = await client.post('/v1/memory/ingest?wait=true', { messages, session_id })
    t.equal(status, 200)
  }
  t.same(await textsIn(client), [])
  for (const session_id of names) {
    t.same(await textsIn(client, undefined, { session_id }), [`the piano of ${session_id}`])
  }
  const utf8 = Buffer.from('größe', 'utf8').toString('latin1')
  t.same(await textsIn(client, utf8), ['the piano of größe'], 'a header is read as UTF-8')
})

t.test('sessions of the same name in two vaults know nothing of each other', async t => {
  const [one, other] = [await toldClient(), await toldClient()]
  await tell(one, 'the piano is out of tune', 'lesson')
  t.same(await textsIn(other, 'lesson'), [inLesson])
  await one.send('DELETE', '/v1/memory', { headers: { 'x-session-id': 'lesson' } })
  t.same(await textsIn(other, 'lesson'), [inLesson])
})
