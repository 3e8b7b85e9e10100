import t from 'tap'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { buildOrg } from '#test/support/start/admin.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base, newClient } = await startService(t)

const messages = [{ role: 'user', content: 'the ferry leaves at noon' }]
const found = { query: 'when does the ferry leave?', limit: 3 }
const nothingStored = { accepted: false, queued: false, message: /does not store memory/ }

t.test('200: without the right to read nothing is found, and the debt is told', async t => {
  const { key, ...client } = await newClient()
  await client.post('/v1/memory/ingest?wait=true', { messages })
  const { reflection } = (await client.post('/v1/memory/search', found)).body
  const asked = { messages: [{ role: 'user', content: found.query }] }
  t.match((await client.post('/v1/memory/prepare', asked)).body.context, /noon/)
  for (const suffix of ['write', 'off']) {
    const narrow = createTestClient(base, `${key}:${suffix}`)
    const searched = await narrow.post('/v1/memory/search', found)
    t.match(
      searched,
      { status: 200, body: { query: found.query, totalMemories: 0, tokenCount: 0 } },
      suffix,
    )
    t.same(searched.body.memories, [])
    t.same(searched.body.reflection, reflection)
    const prepared = await narrow.post('/v1/memory/prepare', { messages })
    t.match(prepared, {
      status: 200,
      body: { context: null, memories_found: 0, tokens_billed: 0, abstained: 'off' },
    })
    t.same(prepared.body.reflection, reflection)
    const judged = await narrow.post('/v1/memory/search', { limit: 3 })
    t.equal(judged.status, 400, 'a body is judged all the same')
  }
})

t.test('202: without the right to store nothing is stored, and the answer says so', async t => {
  const key = await buildKey(backend)
  for (const suffix of ['read', 'off']) {
    const narrow = createTestClient(base, `${key}:${suffix}`)
    for (const query of ['', '?wait=true']) {
      const answer = await narrow.post(`/v1/memory/ingest${query}`, { messages })
      t.match(answer, { status: 202, body: nothingStored }, suffix)
      t.match(answer.body.message, `:${suffix}`)
    }
    t.equal((await narrow.post('/v1/memory/ingest', {})).status, 400)
  }
  t.match((await createTestClient(base, key).get('/v1/memory/stats')).body, { memories: 0 })
})

t.test('202: the key of an organization itself, in words that fit it', async t => {
  const { orgKey } = await buildOrg(backend, base)
  const client = createTestClient(base, orgKey)
  const message = /^The key of an organization itself does not store memory$/
  t.match(await client.post('/v1/memory/ingest', { messages }), {
    status: 202,
    body: { ...nothingStored, message },
  })
  const refused = await client.post('/v1/memory/delete-ids', { ids: [crypto.randomUUID()] })
  t.match(refused, { status: 403, body: { error: message } })
  t.equal((await client.post('/v1/memory/search', found)).status, 200)
})
