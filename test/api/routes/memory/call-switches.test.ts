import t from 'tap'
import {
  startTestApi,
  createTestClient,
  buildKey,
  startJobWorkers,
} from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'

/* The switches of model calls are heard by `ingest` and `prepare` too, in header, query and body. */

const backend = await createTestBackend(t)
await startJobWorkers(backend)
const { base } = await startTestApi(t, backend)
const newClient = async () => createTestClient(base, await buildKey(backend))
const messages = [
  { role: 'user', content: 'My boat is called Wanda.' },
  { role: 'assistant', content: 'Wanda is a fine name for a boat.' },
]
const question = [{ role: 'user', content: 'What is my boat called?' }]

type Sent = { headers?: Record<string, string>; query?: string; body?: object }

const ingest = (client: Awaited<ReturnType<typeof newClient>>, { headers, query, body }: Sent) =>
  client.send('POST', `/v1/memory/ingest?wait=true${query ? `&${query}` : ''}`, {
    body: { messages, ...body },
    ...(headers && { headers }),
  })
const prepare = (client: Awaited<ReturnType<typeof newClient>>, { headers, query, body }: Sent) =>
  client.send('POST', `/v1/memory/prepare${query ? `?${query}` : ''}`, {
    body: { messages: question, ...body },
    ...(headers && { headers }),
  })
const listed = async (client: Awaited<ReturnType<typeof newClient>>) =>
  (await client.get('/v1/memory/list')).body.items as { role: string; expires_at?: string }[]

const offs: Sent[] = [
  { headers: { 'x-memory-mode': 'off' } },
  { query: 'memory=off' },
  { query: 'memory=false' },
  { query: 'mode=off' },
  { query: 'memory_mode=off' },
  { body: { memory: false } },
  { body: { memory_mode: 'off' } },
]

t.test('off, or read: nothing is stored', async t => {
  const client = await newClient()
  const reads: Sent[] = [
    { headers: { 'x-memory-mode': 'read' } },
    { query: 'mode=read' },
    { body: { memory_mode: 'read' } },
    { body: { store: false, store_response: false } },
    { query: 'store=false&store_response=false' },
    { headers: { 'x-memory-store': 'false' }, body: { store_response: false } },
  ]
  for (const sent of [...offs, ...reads]) {
    const answer = await ingest(client, sent)
    t.match(answer, { status: 202, body: { accepted: false, queued: false } }, JSON.stringify(sent))
  }
  t.strictSame(await listed(client), [])
})

t.test('off, or write: nothing is recalled', async t => {
  const client = await newClient()
  await ingest(client, {})
  t.type((await prepare(client, {})).body.context, 'string')
  const writes: Sent[] = [
    { headers: { 'x-memory-mode': 'write' } },
    { query: 'mode=write' },
    { body: { memory_mode: 'write' } },
  ]
  for (const sent of [...offs, ...writes]) {
    const answer = await prepare(client, sent)
    t.match(
      answer,
      { status: 200, body: { context: null, abstained: 'off' } },
      JSON.stringify(sent),
    )
  }
  const { body } = await prepare(client, { body: { store: false, ttl: 60 }, query: 'memory=on' })
  t.type(body.context, 'string', 'what is stored does not concern it')
})

t.test('one half, and a lifetime', async t => {
  for (const [sent, role] of [
    [{ body: { store: false } }, 'assistant'],
    [{ query: 'store=false' }, 'assistant'],
    [{ body: { store_response: false } }, 'user'],
    [{ query: 'store_response=false' }, 'user'],
    [{ headers: { 'x-memory-store-response': 'false' } }, 'user'],
  ] satisfies [Sent, string][]) {
    const client = await newClient()
    await ingest(client, sent)
    t.match(await listed(client), [{ role }], JSON.stringify(sent))
  }
  for (const sent of [
    { body: { ttl: 3_600 } },
    { body: { memory_ttl: 3_600 } },
    { query: 'ttl=3600' },
    { headers: { 'x-memory-ttl': '3600' } },
    { body: { ttl: 7_200, expires_at: '2999-01-01' }, headers: { 'x-memory-ttl': '3600' } },
  ]) {
    const client = await newClient()
    const earliest = Date.now() + 3_500_000
    await ingest(client, sent)
    const ends = (await listed(client)).map(({ expires_at: end }) => Date.parse(end ?? ''))
    t.equal(ends.length, 2)
    for (const end of ends) t.ok(end > earliest && end < earliest + 900_000, JSON.stringify(sent))
  }
})

t.test('400: switches that say nothing', async t => {
  const client = await newClient()
  for (const sent of [
    { body: { memory: 'no' } },
    { body: { memory_mode: 'none' } },
    { body: { ttl: 0 } },
    { query: 'mode=none' },
    { query: 'ttl=0' },
    { headers: { 'x-memory-mode': 'none' } },
    { headers: { 'x-memory-ttl': 'soon' } },
    { body: { memmory: false } },
  ])
    t.equal((await ingest(client, sent)).status, 400, JSON.stringify(sent))
  t.strictSame(await listed(client), [])
})

t.test('a message: memory is heard, nearly memory is a 400, others are named', async t => {
  const client = await newClient()
  const said = (mark: object) => ({ body: { messages: [{ ...messages[0], ...mark }] } })
  t.match((await ingest(client, said({ memory: false }))).body, { accepted: false })
  for (const name of ['Memory', 'memmory', 'memroy', 'MEMORY'])
    t.match(await ingest(client, said({ [name]: false })), {
      status: 400,
      body: { error: `unknown field messages[0].${name}`, hint: 'did you mean memory?' },
    })
  t.strictSame(await listed(client), [])
  const named = await ingest(client, said({ private: true, store: false, member: 1, id: 'm' }))
  t.equal(named.headers.get('x-memory-ignored-fields'), 'messages[].private, messages[].store')
})
