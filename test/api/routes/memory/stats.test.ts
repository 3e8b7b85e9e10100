import t from 'tap'
import { startService } from '#test/support/start/start-service.ts'

const { newClient } = await startService(t)
const email = 'owner@example.com'
const { key, ...api } = await newClient(email)
const masked = `${key.slice(0, 6)}…${key.slice(-4)}`

t.test('200: an empty vault', async t => {
  t.match(await api.get('/v1/memory/stats'), {
    status: 200,
    body: { key: masked, memories: 0, total_tokens: 0, oldest: null, newest: null },
  })
})

t.test('200: counts, tokens and the span of time', async t => {
  await api.post('/v1/memory/ingest?wait=true', {
    messages: [
      { role: 'user', content: 'one', timestamp: Date.parse('2024-01-01T00:00:00Z') },
      { role: 'assistant', content: 'two', timestamp: Date.parse('2025-01-01T00:00:00Z') },
    ],
  })
  t.match(await api.get('/v1/memory/stats'), {
    status: 200,
    body: {
      memories: 2,
      total_tokens: 2,
      oldest: '2024-01-01T00:00:00.000Z',
      newest: '2025-01-01T00:00:00.000Z',
    },
  })
})

t.test('200: days with memories, sessions included, without what was cleared', async t => {
  const at = Date.parse('2024-01-01T23:59:59.999Z')
  const store = (content: string, session_id: string) =>
    api.post('/v1/memory/ingest?wait=true', {
      messages: [{ role: 'user', content, timestamp: at }],
      session_id,
    })
  await store('three', 'kept')
  await store('four', 'gone')
  const day = (name: string, raw: number) => ({ day: name, raw, reflections: 0 })
  const { body } = await api.get('/v1/memory/stats?by_day=true')
  t.same(body.by_day, [day('2024-01-01', 3), day('2025-01-01', 1)])
  await api.send('DELETE', '/v1/memory', { headers: { 'x-session-id': 'gone' } })
  await api.send('DELETE', '/v1/memory', { headers: { 'x-session-id': 'kept' } })
  const { body: after } = await api.get('/v1/memory/stats?by_day=true')
  t.same(after.by_day, [day('2024-01-01', 1), day('2025-01-01', 1)])
})

t.test('200 by key for keys of the account', async t => {
  t.match(await (await newClient(email)).get(`/v1/memory/${key}/stats`), {
    status: 200,
    body: { key: masked, memories: 2 },
  })
})

t.test('200: warmup loads the vault, and a session on its own', async t => {
  const { body } = await api.post('/v1/memory/warmup')
  t.match(body, { status: 'warm', key: masked, memories_loaded: 2 })
  t.ok(body.warmup_ms >= 0)
  const session = await api.post('/v1/memory/warmup', {}, { 'x-session-id': 'none' })
  t.equal(session.body.memories_loaded, 0)
  const named = await api.post('/v1/memory/warmup', { session_id: 'none' })
  t.equal(named.body.memories_loaded, 0)
})
