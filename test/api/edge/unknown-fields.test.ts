import t from 'tap'
import {
  startTestApi,
  createTestClient,
  buildKey,
  startJobWorkers,
} from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { sendRaw } from '#test/support/start/raw-http.ts'

const backend = await createTestBackend(t)
await startJobWorkers(backend)
const { base } = await startTestApi(t, backend)
const newClient = async () => createTestClient(base, await buildKey(backend))
const messages = [{ role: 'user', content: 'the ferry leaves at noon' }]
const ignoredOf = ({ headers }: { headers: Headers }) => headers.get('x-memory-ignored-fields')
const clampedOf = ({ headers }: { headers: Headers }) => headers.get('x-memory-clamped')

t.test('unknown fields are not used, and a header names them', async t => {
  const client = await newClient()
  const cases: [path: string, body: object, ignored: string][] = [
    [
      'ingest?wait=true',
      { messages, colour: 'u', stream: false, density: 'low' },
      'colour, stream, density',
    ],
    ['prepare', { messages, model: 'gpt-4o', limit: 3 }, 'model, limit'],
    [
      'search',
      { query: 'ferry', limit: 3, top_k: 1, 'größe, x': 1 },
      'top_k, gr%C3%B6%C3%9Fe%2C%20x',
    ],
    ['date-search', { from: '2020-01-01', limit: 3 }, 'limit'],
  ]
  for (const [path, body, ignored] of cases) {
    const answer = await client.post(`/v1/memory/${path}`, body)
    t.equal(answer.status, 200, path)
    t.equal(ignoredOf(answer), ignored, path)
  }
  const usual = await client.post('/v1/memory/search', { query: 'ferry', limit: 3 })
  t.equal(ignoredOf(usual), null)
})

t.test('400: a name that is nearly that of a missing field', async t => {
  const client = await newClient()
  for (const [body, hint] of [
    [{ query: 'x', limit: 1, sesion_id: 's' }, 'did you mean session_id?'],
    [{ query: 'x', limit: 1, tier: [1] }, 'did you mean tiers?'],
    [{ query: 'x', Limit: 1 }, 'did you mean limit?'],
    [{ text: 'x', limit: 1 }, 'not known here: text'],
  ] as const) {
    t.match(await client.post('/v1/memory/search', body), { status: 400, body: { hint } })
  }
  const beside = await client.post('/v1/memory/search', { query: 'x', limit: 1, limits: 2 })
  t.match([beside.status, ignoredOf(beside)], [200, 'limits'], 'the field itself is there')
})

t.test('a body of many unknown fields is read in time', async t => {
  const client = await newClient()
  const many = Object.fromEntries(Array.from({ length: 9_900 }, (_, n) => [`zzzzzzzz${n}`, 1]))
  const answer = await client.post('/v1/memory/search', { query: 'x', limit: 1, ...many })
  t.equal(answer.status, 200)
  t.match(ignoredOf(answer), /^zzzzzzzz0, (?:zzzzzzzz\d+, ){19}and-980-more$/)
})

t.test('unknown fields of a line are not used, and named once', async t => {
  const client = await newClient()
  const lines = ['a', 'b'].map(content =>
    JSON.stringify({ id: 'x', source: 'core', content, foo: 1 }),
  )
  const answer = await client.send('POST', '/v1/memory/upload', { body: lines.join('\n') })
  t.match(answer, { status: 200, body: { status: 'complete', stats: { stored: 2 } } })
  t.equal(ignoredOf(answer), 'id, source, foo')
  t.match(await client.send('POST', '/v1/memory/upload', { body: '{"text":"x"}\n[1]' }), {
    status: 400,
    body: {
      error: 'No line of the file can be stored',
      hint: /line 1: content is required.*line 2/,
    },
  })
})

t.test('JSON is JSON, whatever its type says', async t => {
  const key = await buildKey(backend)
  const client = createTestClient(base, key)
  const { port } = new URL(base)
  const types = [
    'text/plain;charset=UTF-8',
    'application/x-www-form-urlencoded',
    'text/json',
    'application/xml',
    ';;;',
  ]
  for (const type of types) {
    const headers = { 'content-type': type }
    const body = JSON.stringify({ query: 'x', limit: 1 })
    t.equal((await client.send('POST', '/v1/memory/search', { body, headers })).status, 200, type)
    t.match(await client.send('POST', '/v1/memory/search', { body: '<x/>', headers }), {
      status: 400,
    })
  }
  const json = JSON.stringify({ query: 'x', limit: 1 })
  const head = `POST /v1/memory/search HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}`
  const bare = `${head}\r\nContent-Length: ${json.length}\r\n\r\n${json}`
  const { answers } = await sendRaw(Number(port), [bare], { answersMax: 1 })
  t.equal(answers[0]?.status, 200, 'without a type')
})

t.test('query parameters that nobody takes are named, empty ones are absent', async t => {
  const client = await newClient()
  for (const path of ['/health?t=1', '/health/live?x=y', '/?utm_source=a']) {
    t.equal((await client.get(path)).status, 200, path)
  }
  const listed = await client.get('/v1/memory/list?_=1&tier=&search=&colour=red')
  t.match([listed.status, ignoredOf(listed)], [200, '_, colour'])
  const stats = await client.get('/v1/memory/stats?foo=1&foo=2')
  t.match([stats.status, ignoredOf(stats)], [200, 'foo'])
  for (const [method, path] of [
    ['GET', '/v1/memory/list?limt=5'],
    ['GET', '/v1/memory/list?session_id=s'],
    ['POST', '/v1/memory/search?limit=5'],
    ['POST', '/v1/memory/edit?dry_run=true'],
    ['DELETE', '/v1/memory?user=ann'],
    ['DELETE', '/v1/memory?session_id='],
    ['POST', '/v1/memory/transfer?dry_run='],
  ] as const) {
    t.equal((await client.send(method, path)).status, 400, path)
  }
})

t.test('what is above a bound is brought to it and told', async t => {
  const client = await newClient()
  const long = `ferry ${'x '.repeat(20_000)} noon`
  const searched = await client.post('/v1/memory/search', {
    query: long,
    limit: 5_000,
    tiers: [1, 1],
  })
  t.match([searched.status, clampedOf(searched)], [200, 'query=32000, limit=200'])
  t.match(searched.body.query, /^ferry x [^]* noon$/)
  t.ok(searched.body.query.length <= 32_000)
  const prepared = await client.post('/v1/memory/prepare', { messages, context_limit: 501 })
  t.match([prepared.status, clampedOf(prepared)], [200, 'context_limit=500'])
  const listed = await client.get('/v1/memory/list?limit=1000')
  t.match([listed.status, clampedOf(listed)], [200, 'limit=200'])
  t.equal((await client.get('/v1/memory/list?limit=5')).status, 200)
})
