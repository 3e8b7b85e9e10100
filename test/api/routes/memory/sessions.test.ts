import t from 'tap'
import { createTestClient, type TestClient } from '#test/support/start/api.ts'
import { insertStoredMemories, readVaultScope } from '#test/support/checks/stored-memories.ts'
import { startEmbeddingProvider } from '#test/support/doubles/embedding-provider.ts'
import { isSinceStart } from '#test/support/samples/recent.ts'
import { startService } from '#test/support/start/start-service.ts'

const provider = await startEmbeddingProvider(t)
const { backend, base, newClient } = await startService(t, {
  env: { OLLAMA_BASE_URL: provider.baseUrl },
})
const path = '/v1/memory/sessions'

const tell = (client: TestClient, session_id: string, content = 'a word') =>
  client.post('/v1/memory/ingest?wait=true', {
    messages: [
      { role: 'user', content, timestamp: Date.parse('2026-03-01T10:00:00Z') },
      { role: 'assistant', content: 'noted', timestamp: Date.parse('2026-03-02T10:00:00Z') },
    ],
    session_id,
  })

const named = async (client: TestClient, query = ''): Promise<string[]> =>
  (await client.get(path + query)).body.items.map(
    ({ session_id: session }: { session_id: string }) => session,
  )

t.test('200: the sessions of a vault with what they hold, the latest first', async t => {
  const client = await newClient()
  t.match((await client.get(path)).body, { items: [], has_more: false, next_cursor: null })
  await client.post('/v1/memory/ingest?wait=true', {
    messages: [{ role: 'user', content: 'core' }],
  })
  for (const session of ['one', 'zwei 2️⃣', 'three']) await tell(client, session)
  await tell(client, 'one', 'another word')
  const { status, body } = await client.get(path)
  t.equal(status, 200)
  t.match(body, {
    items: [
      {
        session_id: 'one',
        memories: 4,
        first_at: '2026-03-01T10:00:00.000Z',
        last_at: '2026-03-02T10:00:00.000Z',
      },
      { session_id: 'three', memories: 2 },
      { session_id: 'zwei 2️⃣', memories: 2 },
    ],
    has_more: false,
    next_cursor: null,
  })
  t.ok(isSinceStart(body.items[0].stored_at))
})

t.test('200: nothing of another vault of the account, nor of another account', async t => {
  const client = await newClient()
  const other = await newClient()
  await tell(client, 'mine')
  const spare = createTestClient(base, (await client.post('/v1/keys', { name: 'spare' })).body.key)
  await tell(spare, 'of the spare')
  t.same(await named(client), ['mine'])
  t.same(await named(spare), ['of the spare'])
  t.same(await named(other), [])
})

t.test('200: pages follow one another without a gap, whatever is stored meanwhile', async t => {
  const { key, ...client } = await newClient()
  const rows = Array.from({ length: 23 }, (_, n) => ({ text: 'x', at: n, session: `s${n}` }))
  for (const row of rows)
    await insertStoredMemories(backend, await readVaultScope(backend, key), [row])
  const seen: string[] = []
  for (let query = '?limit=5'; ;) {
    const { body } = await client.get(path + query)
    t.equal(body.has_more, body.next_cursor !== null)
    seen.push(...body.items.map(({ session_id: session }: { session_id: string }) => session))
    if (seen.length === 5)
      await insertStoredMemories(backend, await readVaultScope(backend, key), [rows[22]!])
    if (!body.has_more) break
    query = `?limit=5&cursor=${body.next_cursor}`
  }
  t.same(
    seen,
    Array.from({ length: 23 }, (_, n) => `s${22 - n}`),
  )
  t.same((await named(client, '?limit=3')).slice(0, 2), ['s22', 's21'])
})

t.test('200: of a vault whose memories are many to a session, each once', async t => {
  const { key, ...client } = await newClient()
  // One moment for all of them: their names tell them apart.
  await insertStoredMemories(
    backend,
    await readVaultScope(backend, key),
    Array.from({ length: 300 }, (_, n) => ({ text: `${n}`, at: n, session: `chat ${n % 30}` })),
    { vectors: false },
  )
  const { body } = await client.get(`${path}?limit=20`)
  const rest = await client.get(`${path}?limit=20&cursor=${body.next_cursor}`)
  const all = [...body.items, ...rest.body.items] as { session_id: string; memories: number }[]
  t.equal(new Set(all.map(({ session_id: session }) => session)).size, 30)
  t.ok(all.every(({ memories }) => memories === 10))
})

t.test('200: a cleared session is gone at once, and there again with what came after', async t => {
  const client = await newClient()
  for (const session of ['stays', 'goes']) await tell(client, session)
  await client.send('DELETE', '/v1/memory', { headers: { 'x-session-id': 'goes' } })
  t.same(await named(client), ['stays'])
  await tell(client, 'goes', 'and comes')
  const { items } = (await client.get(path)).body
  t.match(items, [{ session_id: 'goes', memories: 2 }, { session_id: 'stays' }])
  const { body } = await client.get(`${path}?limit=1`)
  await client.send('DELETE', '/v1/memory')
  t.same(await named(client), [])
  const stale = await client.get(`${path}?limit=1&cursor=${body.next_cursor}`)
  t.equal(stale.status, 400, 'a cursor of what is no more')
})

t.test('200: a session whose memories were removed one by one is passed over', async t => {
  const { key, ...client } = await newClient()
  const ids: string[] = []
  for (let n = 0; n < 9; n++) {
    const row = { text: `${n}`, at: n, session: `s${n}` }
    ids.push(...(await insertStoredMemories(backend, await readVaultScope(backend, key), [row])))
  }
  await client.post('/v1/memory/delete-ids', { ids: ids.slice(2, 9) })
  const { body } = await client.get(`${path}?limit=2`)
  t.match(body, { items: [{ session_id: 's1' }, { session_id: 's0' }], has_more: false })
})

t.test('200: an edit moves a session to the front, other vectors do not', async t => {
  const { key, ...client } = await newClient()
  const scope = await readVaultScope(backend, key)
  const [first] = await insertStoredMemories(backend, scope, [
    { text: 'first', at: 1, session: 'a' },
  ])
  await insertStoredMemories(backend, scope, [{ text: 'second', at: 2, session: 'b' }])
  t.same(await named(client), ['b', 'a'])
  await client.post('/v1/memory/edit', { memory_id: first, text: 'the first' })
  t.same(await named(client), ['a', 'b'])
  const storedAt = async () => {
    const items = (await client.get(path)).body.items as { stored_at: string }[]
    return items.map(({ stored_at: at }) => at)
  }
  const before = await storedAt()
  t.match(await client.post('/v1/memory/reembed', { embeddings: 'ollama/double' }), {
    status: 200,
    body: { embedded: 2 },
  })
  t.same(await storedAt(), before)
})
