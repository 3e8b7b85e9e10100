import t from 'tap'
import { startTestApi, type TestAnswer, type TestClient } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { readVaultScope } from '#test/support/checks/stored-memories.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { readDocuments, insertMemories } from '#test/support/start/insert-memories.ts'
import { loseAnswers } from '#test/support/checks/alter-jobs.ts'
import { billedEventsOfVault, countSessions, vaultRow } from '#test/support/checks/observe.ts'
import { startService } from '#test/support/start/start-service.ts'
import type { KeyedClient } from '#test/support/start/memory-file.ts'

const { backend, newClient } = await startService(t, { jobs: ['ingest', 'clear', 'delete-ids'] })
/** A process whose accepted clearings wait: no worker takes them. */
const { backend: idle, newClient: newIdleClient } = await startService(t, { jobs: [] })

const tell = (
  { key }: KeyedClient,
  texts: string[],
  session: string | null = null,
  on = backend,
): Promise<string[]> =>
  insertMemories(
    on,
    key,
    texts.map(text => ({ text })),
    { session },
  )

const clear = (
  client: TestClient,
  headers: Record<string, string> = {},
  query = '',
): Promise<TestAnswer> => client.send('DELETE', `/v1/memory${query}`, { headers })

async function found(
  client: TestClient,
  query: string,
  headers: Record<string, string> = {},
): Promise<string[]> {
  const { body } = await client.post('/v1/memory/search', { query, limit: 50 }, headers)
  return body.memories.map((memory: { content: string }) => memory.content)
}

const inSession = { 'x-session-id': 'trip' }

t.test('200: core, reflections and every session go, from sight and from the store', async t => {
  const mine = await newClient()
  await tell(mine, ['a grey kitten', 'a brown kitten'])
  await tell(mine, ['a trip to Lisbon'], 'trip')
  const { status, body } = await clear(mine)
  t.equal(status, 200)
  t.same(body, {
    key: `${mine.key.slice(0, 6)}…${mine.key.slice(-4)}`,
    session_id: null,
    deleted: 3,
    reset: false,
    operation_id: body.operation_id,
    message: 'Deleted 3 memories',
  })
  t.same(await found(mine, 'kitten'), [])
  t.same(await found(mine, 'trip', inSession), [])
  t.same(await readDocuments(backend, mine.key), [])
  t.match((await mine.get('/v1/memory/stats')).body, { memories: 0 })
  t.match((await mine.get(`/v1/operations/${body.operation_id}`)).body, {
    kind: 'clear',
    state: 'done',
    progress: { done: 3, total: 3 },
    outcome: { status: 200, body },
  })
})

t.test('200: an empty vault is cleared of nothing, and as often as you like', async t => {
  const mine = await newClient()
  t.match((await clear(mine)).body, { deleted: 0, message: 'Deleted 0 memories' })
  t.match((await clear(mine)).body, { deleted: 0 })
})

t.test('200: with a session that session alone', async t => {
  const mine = await newClient()
  await tell(mine, ['a grey kitten'])
  await tell(mine, ['a trip to Lisbon', 'a trip to Porto'], 'trip')
  await tell(mine, ['a plan for the garden'], 'garden')
  t.match((await clear(mine, inSession)).body, {
    session_id: 'trip',
    deleted: 2,
    message: 'Deleted 2 memories of this session',
  })
  t.same(await found(mine, 'trip', inSession), [])
  t.same(await found(mine, 'kitten'), ['a grey kitten'])
  t.same(await found(mine, 'garden', { 'x-session-id': 'garden' }), ['a plan for the garden'])
  t.equal((await readDocuments(backend, mine.key)).length, 2)
  t.match((await mine.get('/v1/memory/stats')).body, { memories: 2 })

  await tell(mine, ['a trip to Faro'], 'trip')
  t.same(await found(mine, 'trip', inSession), ['a trip to Faro'], 'the session goes on')
  t.match((await clear(mine, {}, '?session_id=trip')).body, {
    session_id: 'trip',
    deleted: 1,
    message: /1 memory /,
  })
})

t.test('200: a reset takes the debt, the sessions and the tombstones too', async t => {
  const mine = await newClient()
  const [id] = await tell(mine, ['a grey kitten', 'a brown kitten'])
  await tell(mine, ['a trip to Lisbon'], 'trip')
  await clear(mine, inSession)
  await mine.post('/v1/memory/delete-ids', { ids: [id] })
  const { body } = await clear(mine, {}, '?reset=true')
  t.match(body, { deleted: 1, reset: true, message: /any embedding model/ })
  t.same(await readDocuments(backend, mine.key), [])
  const { vault } = await readVaultScope(backend, mine.key)
  t.match(await vaultRow(backend, vault), { rawUnits: 0 })
  t.equal(await countSessions(backend, vault), 0)
})

t.test('200: what is stored afterwards is found, and the debt begins at zero', async t => {
  const mine = await newClient()
  await tell(mine, ['a grey kitten'])
  await clear(mine)
  const { body } = await mine.post('/v1/memory/ingest?wait=true', {
    messages: [{ role: 'user', content: 'a new kitten' }],
  })
  t.equal(body.reflection.unconsolidated.raw.units, 1)
  t.same(await found(mine, 'kitten'), ['a new kitten'])
  const search = await mine.post('/v1/memory/search', { query: 'kitten', limit: 1 })
  t.equal(search.body.reflection.unconsolidated.raw.units, 1)
})

t.test('200: another vault keeps everything', async t => {
  const [mine, stranger] = [await newClient(), await newClient()]
  await tell(mine, ['a grey kitten'])
  await tell(stranger, ['a black kitten'])
  await tell(stranger, ['a trip to Oslo'], 'trip')
  await clear(mine)
  await clear(mine, inSession)
  t.same(await found(stranger, 'kitten'), ['a black kitten'])
  t.same(await found(stranger, 'trip', inSession), ['a trip to Oslo'])
})

t.test('200: other processes see it at once and let go of what they held', async t => {
  const second = await createTestBackend(t, { config: backend.config })
  const mine = await newClient()
  const elsewhere = await startTestApi(t, second, mine.key)
  await tell(mine, ['a grey kitten'])
  t.equal((await found(elsewhere, 'kitten')).length, 1)
  t.equal(second.vaultIndexes.count, 1)
  await clear(mine)
  await waitUntil('its image is gone without a request', () => second.vaultIndexes.count === 0)
  t.same(await found(elsewhere, 'kitten'), [])
})

t.test('200: an Idempotency-Key clears once, whatever was stored since', async t => {
  const mine = await newClient()
  const once = { 'idempotency-key': 'once' }
  await tell(mine, ['a grey kitten'])
  const first = await clear(mine, once)
  await tell(mine, ['a new kitten'])
  t.same((await clear(mine, once)).body, first.body)
  // As if the process had died before it answered: the request runs again under its operation.
  await loseAnswers(backend, 'once')
  t.same((await clear(mine, once)).body, first.body)
  t.same(await found(mine, 'kitten'), ['a new kitten'])
  const other = await clear(mine, { ...once, ...inSession })
  t.equal(other.status, 400, 'the same key for a session is another request')
})

t.test('200: kept answers do not show what was cleared', async t => {
  const mine = await newClient()
  await tell(mine, ['the safe opens with 4711'])
  const ask = (path: string, body: object) => mine.post(path, body, { 'idempotency-key': 'ask' })
  const questions = [
    ['/v1/memory/search', { query: 'safe', limit: 5 }],
    ['/v1/memory/prepare', { messages: [{ role: 'user', content: 'how does the safe open?' }] }],
  ] as const
  for (const [path, body] of questions) t.match(JSON.stringify(await ask(path, body)), /4711/)
  await clear(mine)
  for (const [path, body] of questions) t.notMatch(JSON.stringify(await ask(path, body)), /4711/)
})

t.test('200: nothing is billed', async t => {
  const mine = await newClient()
  await tell(mine, ['a grey kitten'])
  await clear(mine)
  const { vault } = await readVaultScope(backend, mine.key)
  t.same(await billedEventsOfVault(backend, vault), [])
})

t.test('202: invisible at once even while no worker runs; it cannot be cancelled', async t => {
  const mine = await newIdleClient()
  await tell(mine, ['a grey kitten'], null, idle)
  t.equal((await found(mine, 'kitten')).length, 1)
  const { status, body } = await clear(mine, { prefer: 'respond-async' })
  t.match({ status, body }, { status: 202, body: { status: 'processing' } })
  t.same(await found(mine, 'kitten'), [])
  t.match((await mine.get('/v1/memory/stats')).body, { memories: 0 })
  const operation = await mine.get(`/v1/operations/${body.operation_id}`)
  t.match(operation.body, { state: 'running', outcome: null })
  t.equal((await mine.send('DELETE', `/v1/operations/${body.operation_id}`)).status, 409)
})

t.test('202: so is a session, and the counts leave it out', async t => {
  const mine = await newIdleClient()
  await tell(mine, ['a grey kitten'], null, idle)
  await tell(mine, ['a trip to Lisbon'], 'trip', idle)
  t.equal((await clear(mine, { ...inSession, prefer: 'respond-async' })).status, 202)
  t.same(await found(mine, 'trip', inSession), [])
  t.match((await mine.get('/v1/memory/stats')).body, { memories: 1 })
  await tell(mine, ['a trip to Faro'], 'trip', idle)
  t.same(await found(mine, 'trip', inSession), ['a trip to Faro'])
  t.match((await mine.get('/v1/memory/stats')).body, { memories: 2 })
})

t.test('400: what seems to mean a session, and does not name it, clears nothing', async t => {
  const mine = await newClient()
  await tell(mine, ['a grey kitten'])
  const body = (sent: string) => mine.send('DELETE', '/v1/memory', { body: sent })
  for (const [answer, message] of [
    [await clear(mine, { 'x-session-id': '' }), /X-Session-ID is empty/],
    [await clear(mine, {}, '?session_id='), /session_id/],
    [await clear(mine, inSession, '?session_id=other'), /session_id/],
    [await body('{"session_id":"trip"}'), /unknown field session_id/],
    [await clear(mine, inSession, '?reset=true'), /reset/],
  ] as const) {
    t.match(answer, { status: 400, body: { error: message } })
  }
  t.same(await found(mine, 'kitten'), ['a grey kitten'])
  t.equal((await body('{}')).status, 200, 'an empty body means nothing')
})
