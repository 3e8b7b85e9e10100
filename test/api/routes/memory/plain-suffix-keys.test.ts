import t from 'tap'
import { buildKey, createTestClient, startJobWorkers, startTestApi } from '#test/support/api.ts'
import { buildOrg } from '#test/support/admin.ts'
import { createTestBackend } from '#test/support/backend.ts'

const backend = await createTestBackend(t)
await startJobWorkers(backend)
const { base } = await startTestApi(t, backend)

const messages = [{ role: 'user', content: 'the ferry leaves at noon' }]
const found = { query: 'when does the ferry leave?', limit: 3 }
const nothingStored = { accepted: false, queued: false, message: /does not store memory/ }

t.test('200: without the right to read nothing is found, and the debt is told', async t => {
  const key = await buildKey(backend)
  const client = createTestClient(base, key)
  await client.post('/v1/memory/ingest?wait=true', { messages })
  const [{ reflection }, block] = [
    (await client.post('/v1/memory/search', found)).body,
    (
      await client.post('/v1/memory/prepare', {
        messages: [{ role: 'user', content: found.query }],
      })
    ).body,
  ]
  t.match(block.context, /noon/)
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
    t.equal(
      (await narrow.post('/v1/memory/search', { limit: 3 })).status,
      400,
      'a body is judged all the same',
    )
    for (const [method, path] of [
      ['GET', 'list'],
      ['POST', 'date-search'],
      ['POST', 'consolidate/checkout'],
    ] as const) {
      t.equal(
        (
          await narrow.send(method, `/v1/memory/${path}`, {
            ...(method === 'POST' && { body: {} }),
          })
        ).status,
        403,
      )
    }
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
    for (const path of ['edit', 'upload', 'delete-ids']) {
      t.equal((await narrow.post(`/v1/memory/${path}`)).status, 403, path)
    }
    t.equal((await narrow.send('DELETE', '/v1/memory')).status, 403)
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
