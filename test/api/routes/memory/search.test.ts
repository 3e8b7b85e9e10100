import t from 'tap'
import { startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { billedEvents } from '#test/support/checks/observe.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, newClient } = await startService(t)
const { key, ...api } = await newClient()
const { post } = api

const said = async (client: typeof api, content: string, rest: object = {}, body: object = {}) =>
  client.post('/v1/memory/ingest?wait=true', {
    messages: [{ role: 'user', content, ...rest }],
    ...body,
  })

await said(api, 'I adopted a grey kitten from the shelter, we named her Ada')
await said(api, 'The dentist appointment is on Thursday at nine')
await said(api, 'Für das Abendessen brauchen wir noch Kartoffeln und Zwiebeln')
await said(api, 'invoice INV-20431 was paid')

t.test('200: every documented field, best first', async t => {
  const { status, body } = await post('/v1/memory/search', { query: 'kitten name', limit: 10 })
  t.equal(status, 200)
  t.match(body, {
    query: 'kitten name',
    sessionId: null,
    memoryKey: `${key.slice(0, 6)}…${key.slice(-4)}`,
    windowBreakdown: { hot: Number, working: 0, longterm: 0 },
    tierBreakdown: { raw: Number, tier2: 0, tier3: 0 },
  })
  t.match(body.memories[0], {
    tier: 1,
    role: 'user',
    content: /grey kitten/,
    window: 'hot',
    source: 'core',
  })
  t.equal(body.totalMemories, body.memories.length)
  t.equal(body.windowBreakdown.hot, body.totalMemories)
  t.equal(body.tierBreakdown.raw, body.totalMemories)
  t.ok(body.tokenCount > 0)
  t.not('importance' in body.memories[0], true, 'raw memories are not rated')
})

t.test('200: exact words find their memory, in any language', async t => {
  const invoice = await post('/v1/memory/search', { query: 'INV-20431', limit: 3 })
  t.match(invoice.body.memories[0], { content: /INV-20431/ })
  const german = await post('/v1/memory/search', { query: 'Kartoffel', limit: 3 })
  t.match(german.body.memories[0], { content: /Kartoffeln/ })
})

t.test('200: a word with soft hyphens inside is found, by search, prepare and list', async t => {
  const content = 'My Grund\u00ADstücks\u00ADver\u200Bwalter is Herr Pohl.'
  await said(api, content)
  const { body } = await post('/v1/memory/search', { query: 'Grundstücksverwalter', limit: 2 })
  t.equal(body.memories[0].content, content)
  const messages = [{ role: 'user', content: 'Who is my Grundstücksverwalter?' }]
  t.match((await post('/v1/memory/prepare', { messages })).body, { context: /Pohl/ })
  const listed = await api.get(`/v1/memory/list?search=${encodeURIComponent('STÜCKSVERWALTER')}`)
  t.match(listed.body.items, [{ text: content }])
  const wide = encodeURIComponent('ΐ'.repeat(512))
  t.equal((await api.get(`/v1/memory/list?search=${wide}`)).status, 200)
})

t.test('200: limit bounds the rows, tiers and importance filter them', async t => {
  t.equal(
    (await post('/v1/memory/search', { query: 'the', limit: 1 })).body.totalMemories <= 1,
    true,
  )
  const reflections = await post('/v1/memory/search', { query: 'kitten', limit: 5, tiers: [2, 3] })
  t.same(reflections.body.memories, [])
  const rated = await post('/v1/memory/search', { query: 'kitten', limit: 5, importance: 1 })
  t.same(rated.body.memories, [], 'raw memories are unrated')
  const raw = await post('/v1/memory/search', { query: 'kitten', limit: 5, tiers: [1] })
  t.match(raw.body.memories[0], { content: /kitten/ })
})

t.test('200: a session is a space of its own', async t => {
  await said(api, 'In this session we plan a trip to Lisbon', {}, { session_id: 'trip' })
  const inSession = await post(
    '/v1/memory/search',
    { query: 'trip plan', limit: 5 },
    { 'x-session-id': 'trip' },
  )
  t.match(inSession.body, { sessionId: 'trip', totalMemories: 1 })
  t.match(inSession.body.memories[0], { content: /Lisbon/, source: 'session' })
  const core = await post('/v1/memory/search', { query: 'Lisbon trip plan', limit: 10 })
  t.notMatch(JSON.stringify(core.body.memories), /Lisbon/)
  const other = await post('/v1/memory/search', { query: 'trip', limit: 5, session_id: 'other' })
  t.equal(other.body.totalMemories, 0)
})

t.test('200: another vault sees nothing of it', async t => {
  const stranger = await newClient()
  const { body } = await stranger.post('/v1/memory/search', { query: 'kitten Ada', limit: 50 })
  t.same(body.memories, [])
  t.equal(body.reflection.unconsolidated.raw.units, 0)
})

t.test('200: what another process stores is found by the next request', async t => {
  const second = await createTestBackend(t, { config: backend.config })
  const elsewhere = await startTestApi(t, second, key)
  await elsewhere.post('/v1/memory/search', { query: 'warm', limit: 1 })
  await said(api, 'The wifi password is hidden under the fern')
  const { body } = await elsewhere.post('/v1/memory/search', { query: 'wifi password', limit: 1 })
  t.match(body.memories, [{ content: /fern/ }])
})

t.test(
  '200: a search is billed for the tokens it returned, an empty one counted alone',
  async t => {
    const { key: mineKey, ...mine } = await newClient()
    await mine.post('/v1/memory/search', { query: 'nothing here', limit: 3 })
    await said(mine, 'The boiler was serviced in May')
    const { body } = await mine.post('/v1/memory/search', { query: 'boiler', limit: 3 })
    await backend.usage.flush()
    const searches = (await billedEvents(backend, mineKey)).filter(({ kind }) => kind === 'search')
    t.same(
      searches.map(({ memoryTokens }) => memoryTokens),
      [0, body.tokenCount],
    )
  },
)

t.test('200: a session header in UTF-8', async t => {
  const unicode = Buffer.from('Zürich 🚲').toString('latin1')
  const ok = await post('/v1/memory/search', { query: 'x', limit: 1 }, { 'x-session-id': unicode })
  t.match(ok, { status: 200, body: { sessionId: 'Zürich 🚲' } })
})
