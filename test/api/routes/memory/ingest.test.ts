import t from 'tap'
import { startJobWorkers } from '#test/support/start/api.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { readDocuments } from '#test/support/start/insert-memories.ts'
import { billedEvents, countRows } from '#test/support/checks/observe.ts'
import { jobsOf, operationState } from '#test/support/checks/observe-jobs.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, newClient } = await startService(t, { jobs: [] })
const { key, ...api } = await newClient()
const { post, get } = api

const exchange = {
  messages: [
    { role: 'user', content: 'my cat is called Ada' },
    { role: 'assistant', content: 'noted, Ada it is' },
  ],
}

const memories = async (): Promise<number> => (await get('/v1/memory/stats')).body.memories

t.test('202: an exchange is accepted, billed and queued at once, and found later', async t => {
  const { status, body } = await post('/v1/memory/ingest', { ...exchange, model: 'openai/gpt-5' })
  t.equal(status, 202)
  t.match(body, { accepted: true, queued: true, retrieval_tokens: 5, response_tokens: 6 })
  t.match(body.reflection, {
    threshold_tokens: 50_000,
    threshold_importance: 150,
    suggestion: null,
  })

  const id = body.operation_id
  t.match(await billedEvents(backend, key), [
    {
      id,
      kind: 'ingest',
      model: 'openai/gpt-5',
      inputTokens: 5,
      outputTokens: 6,
      memoryTokens: 11,
    },
  ])
  t.equal(await operationState(backend, id), 'accepted')
  t.match(await jobsOf(backend, 'ingest'), [{ id, state: 'created' }])

  t.equal(await memories(), 0, 'nothing is stored before a worker has taken the job')
  await startJobWorkers(backend)
  await waitUntil('both turns stored', async () => (await memories()) === 2)
  await waitUntil('the operation done', async () => {
    return (await operationState(backend, body.operation_id)) === 'done'
  })
  const found = await post('/v1/memory/search', { query: 'what is the name of my cat', limit: 1 })
  t.match(found.body.memories, [{ content: 'my cat is called Ada', role: 'user', tier: 1 }])
  t.match(found.body.reflection.unconsolidated.raw, { units: 2, est_tokens: 11 })
})

t.test('200: with wait=true the exchange can be searched when the answer comes', async t => {
  const { status, body } = await post('/v1/memory/ingest?wait=true', {
    messages: [{ role: 'user', content: 'The spare key hangs behind the blue door.' }],
  })
  t.equal(status, 200)
  t.match(body, { accepted: true, queued: false, message: 'Stored 1 memory' })
  const { body: later } = await post('/v1/memory/search', { query: 'anything', limit: 1 })
  t.same(body.reflection, later.reflection, 'the debt counts what has been stored')
  const found = await post('/v1/memory/search', { query: 'where is the spare key?', limit: 5 })
  t.match(found.body.memories[0], { content: 'The spare key hangs behind the blue door.' })
})

t.test('202: event times are the client’s, and kept apart from now', async t => {
  const client = await newClient()
  const at = Date.parse('2023-05-07T10:00:00Z')
  await client.post('/v1/memory/ingest?wait=true', {
    messages: [
      { role: 'user', content: 'Painted the lake at sunrise', timestamp: at, name: 'Mel' },
    ],
  })
  const { body } = await client.post('/v1/memory/search', {
    query: 'painting at sunrise',
    limit: 1,
  })
  t.match(body.memories, [
    { timestamp: '2023-05-07T10:00:00.000Z', window: 'longterm', name: 'Mel' },
  ])
  t.match((await client.get('/v1/memory/stats')).body, { oldest: '2023-05-07T10:00:00.000Z' })
})

t.test('202: only what people said is stored', async t => {
  const client = await newClient()
  const { body } = await client.post('/v1/memory/ingest?wait=true', {
    messages: [
      { role: 'system', content: 'You are a pirate' },
      { role: 'user', content: 'not this one', memory: false },
      { role: 'user', content: [{ type: 'text', text: 'see my boat' }, { type: 'image_url' }] },
      { role: 'tool', content: 'tool output', tool_call_id: 'x' },
      { role: 'assistant', content: null, tool_calls: [] },
      { role: 'assistant', content: 'A fine\u0000 boat \uD800!' },
    ],
  })
  t.match(body, { message: /2 memories/ })
  const found = await client.post('/v1/memory/search', { query: 'boat', limit: 10 })
  t.same(found.body.memories.map((row: { content: string }) => row.content).sort(), [
    'A fine\uFFFD boat \uFFFD!',
    'see my boat\n[image]',
  ])
})

t.test('202: a long turn becomes several memories, in its order', async t => {
  const { key, ...client } = await newClient()
  const paragraph = 'The river rose again and the mill had to be closed for repairs. '.repeat(20)
  const text = Array.from({ length: 5 }, (_, n) => `Part ${n}. ${paragraph}`).join('\n\n')
  await client.post('/v1/memory/ingest?wait=true', { messages: [{ role: 'user', content: text }] })
  const stored = await readDocuments(backend, key)
  t.ok(stored.length > 2)
  t.equal(stored.map(document => document.text).join(''), text)
  t.ok(stored.every(document => document.tokens <= 512))
})

t.test('202: two honest "yes" are two memories', async t => {
  const client = await newClient()
  for (let time = 0; time < 2; time++) {
    await client.post('/v1/memory/ingest?wait=true', {
      messages: [{ role: 'user', content: 'yes, water the tomatoes' }],
    })
  }
  t.equal((await client.get('/v1/memory/stats')).body.memories, 2)
  const { body } = await client.post('/v1/memory/search', { query: 'tomatoes', limit: 10 })
  t.equal(body.totalMemories, 1, 'a search shows the same text once')
})

t.test('400: nothing to store is neither stored nor billed', async t => {
  // Earlier searches are billed in batches.
  await backend.usage.flush()
  const before = [await countRows(backend, 'usage_events'), await countRows(backend, 'operations')]
  for (const messages of [
    [],
    [{ role: 'system', content: 'be kind' }],
    [{ role: 'user', content: '   ' }],
  ]) {
    const { status, body } = await post('/v1/memory/ingest', { messages })
    t.equal(status, 400)
    t.match(body.error, /messages/)
  }
  t.same([await countRows(backend, 'usage_events'), await countRows(backend, 'operations')], before)
})

t.test('202: jobs of a busy vault stand behind those of a quiet one', async t => {
  // Nobody takes jobs on this one.
  const { backend: idle, newClient } = await startService(t, { jobs: [] })
  const [busy, quiet] = [await newClient(), await newClient()]
  await Promise.all(Array.from({ length: 5 }, () => busy.post('/v1/memory/ingest', exchange)))
  const { body } = await quiet.post('/v1/memory/ingest', exchange)
  const jobs = await jobsOf(idle, 'ingest')
  const lowest = Math.min(...jobs.map(({ priority }) => priority))
  t.ok(lowest <= -1)
  t.ok(jobs.find(({ id }) => id === body.operation_id)!.priority > lowest)
})
