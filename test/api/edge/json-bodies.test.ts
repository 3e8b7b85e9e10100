import t from 'tap'
import { buildAdmin } from '#test/support/start/admin.ts'
import {
  buildKey,
  createTestClient,
  startJobWorkers,
  startTestApi,
} from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'

const backend = await createTestBackend(t)
await startJobWorkers(backend)
const { base } = await startTestApi(t, backend)
const fresh = async () => createTestClient(base, await buildKey(backend))
const message = { role: 'user', content: 'the boiler is in the cellar' }

t.test('200: null in an optional field is its absence, at every depth', async t => {
  const client = await fresh()
  const nobody = { session_id: null, embeddings: null, model: null, expires_at: null }
  const told = await client.post('/v1/memory/ingest?wait=true', {
    messages: [{ ...message, timestamp: null, name: null, memory: null }],
    ...nobody,
  })
  t.equal(told.status, 200)
  const filter = { session_id: null, embeddings: null, tiers: null, importance: null }
  const bodies: [string, object][] = [
    ['/v1/memory/search', { query: 'boiler', limit: 5, ...filter }],
    ['/v1/memory/prepare', { messages: [message], density: null, context_limit: null, ...filter }],
    [
      '/v1/memory/date-search',
      { from: '2020-01-01', to: null, query: null, max_tokens: null, order: null, ...filter },
    ],
    ['/v1/memory/warmup', { session_id: null, embeddings: null }],
    ['/v1/memory/consolidate/checkout', { tier: 1, max_tokens: null, session_id: null }],
    ['/v1/keys', { name: null, expires_at: null }],
  ]
  for (const [path, body] of bodies) {
    const { status, body: answer } = await client.post(path, body)
    t.ok(status === 200 || status === 201, `${path}: ${status} ${JSON.stringify(answer)}`)
  }
  const { body } = await client.get('/v1/memory/list')
  t.match(body.items, [{ text: message.content }])
  t.equal(body.items.length, 1)
})

t.test('200: lines of a file may have null where a field is absent', async t => {
  const client = await fresh()
  const send = (path: string, line: object) =>
    client.send('POST', path, {
      headers: { 'content-type': 'application/x-ndjson' },
      body: JSON.stringify(line),
    })
  const line = { content: 'one', role: null, timestamp: null, expires_at: null }
  t.match((await send('/v1/memory/upload', line)).body, {
    status: 'complete',
    stats: { stored: 1 },
  })
  const [exported] = (await client.get('/v1/memory/export')).body
  const nulls = { name: null, importance: null, covers: null, sources: null, vector: null }
  const other = { ...exported, ...nulls, id: crypto.randomUUID(), content: 'two' }
  t.match((await send('/v1/memory/import', other)).body, { status: 'complete', imported: 1 })
})

t.test('null stays what it means: a required field, and a field that is cleared', async t => {
  const client = await fresh()
  for (const [path, body] of [
    ['/v1/memory/search', { query: null, limit: 5 }],
    ['/v1/memory/search', { query: 'x', limit: null }],
    ['/v1/memory/ingest', { messages: null }],
    ['/v1/memory/ingest', { messages: [null] }],
    ['/v1/memory/ingest', { messages: [{ role: null, content: 'x' }] }],
  ] as const) {
    t.equal((await client.post(path, body)).status, 400, JSON.stringify(body))
  }
  const policy = (retention_days: number | null) =>
    client.send('PUT', '/v1/account/policy', { body: { retention_days } })
  t.match((await policy(30)).body, { retention_days: 30 })
  t.match((await policy(null)).body, { retention_days: null })
  const { key } = await buildAdmin(backend)
  const admin = createTestClient(base, key)
  t.equal((await admin.post('/v1/account/admin-keys', { email: null })).status, 201)
})

t.test('400: bytes that are not UTF-8 are not stored with holes', async t => {
  const client = await fresh()
  const latin1 = Buffer.from(
    JSON.stringify({ messages: [{ ...message, content: 'café' }] }),
    'latin1',
  )
  for (const path of ['/v1/memory/ingest', '/v1/memory/prepare', '/v1/chat/completions']) {
    t.match(await client.send('POST', path, { body: latin1 }), {
      status: 400,
      body: path.startsWith('/v1/memory')
        ? { error: 'The body is not valid UTF-8', hint: /UTF-8/ }
        : { error: { message: /^The body is not valid UTF-8\. Encode/ } },
    })
  }
  const marked = Buffer.concat([
    Buffer.from([0xef, 0xbb, 0xbf]),
    Buffer.from(JSON.stringify({ messages: [{ ...message, content: 'café' }] })),
  ])
  t.equal((await client.send('POST', '/v1/memory/ingest?wait=true', { body: marked })).status, 200)
  t.match((await client.get('/v1/memory/list')).body.items, [{ text: 'café' }])
})

t.test('Idempotency-Key: the order of fields and parameters makes no difference', async t => {
  const client = await fresh()
  const key = { 'idempotency-key': crypto.randomUUID() }
  const send = (query: string, body: string) =>
    client.send('POST', `/v1/memory/ingest?${query}`, { body, headers: key })
  const one = '{"messages":[{"role":"user","content":"x","name":"a"}],"session_id":"s"}'
  const two = '{ "session_id": "s", "messages": [{"name":"a","content":"x","role":"user"}] }'
  const first = await send('wait=true&embeddings=local', one)
  t.equal(first.status, 200)
  t.same((await send('embeddings=local&wait=true', two)).body, first.body)
  const lists = '{"messages":[{"role":"user","content":"y","name":"a"}],"session_id":"s"}'
  t.match(await send('wait=true&embeddings=local', lists), {
    status: 400,
    body: { error: /used for another request/ },
  })
})
