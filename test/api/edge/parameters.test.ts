import t from 'tap'
import { contract } from '#api/contract/contract.ts'
import { fieldsOf } from '#api/contract/document.ts'
import { operatorEmail } from '#shared/access/admin.ts'
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
const said = (content: string) => ({ messages: [{ role: 'user', content }] })
const lines = (...values: object[]) => ({
  headers: { 'content-type': 'application/x-ndjson' },
  body: values.map(value => JSON.stringify(value)).join('\n'),
})

t.test(
  '400: every endpoint of our own refuses a parameter that another one knows, and a deletion any',
  async t => {
    const { key } = await buildAdmin(backend, operatorEmail(backend.config))
    const operator = createTestClient(base, key)
    const org = {
      name: 'Acme',
      processor_provider: 'openai',
      extract_model: 'gpt-4o',
      classify_model: 'gpt-4o-mini',
    }
    const { body: created } = await operator.post('/v1/orgs', org)
    const owner = await fresh()
    const hook = { url: 'https://example.com/hook', events: ['key.revoked'] }
    const { body: webhook } = await owner.post('/v1/account/webhooks', hook)
    const forwards = /^\/v1(?:beta)?\/(?:chat|messages|responses|models\/|audio|images|embeddings)/
    for (const { endpoint } of Object.values(contract)) {
      if (endpoint.auth.length === 0) continue
      if (forwards.test(endpoint.path) || (endpoint.query && !fieldsOf(endpoint.query).isClosed))
        continue
      // Members of an organization alone ask these: their own test does.
      if (endpoint.path.startsWith('/v1/shares')) continue
      const path = endpoint.path
        .replace(':orgId', created.org_id)
        .replace(':provider', 'openai')
        .replace(':webhookId', webhook.id)
        .replaceAll(/:\w+/g, () => crypto.randomUUID())
      const byAdmin = /^\/v1\/(?:orgs|operator|account\/admin)/.test(path)
      const client = byAdmin ? operator : owner
      const route = `${endpoint.method} ${endpoint.path}`
      const known = endpoint.query ? fieldsOf(endpoint.query).names : []
      const named = ['on_conflict', ...(endpoint.method === 'DELETE' ? ['colour'] : [])]
      for (const name of named.filter(name => !known.includes(name))) {
        const { status, body } = await client.send(endpoint.method, `${path}?${name}=red`)
        t.equal(status, 400, route)
        t.match(body, { error: `unknown query parameter ${name}`, hint: String }, route)
      }
    }
  },
)

t.test('400: the hint has the nearest name, or the place', async t => {
  const client = await fresh()
  const hint = async (method: string, path: string) => (await client.send(method, path)).body.hint
  t.equal(await hint('GET', '/v1/memory/list?limt=5'), 'did you mean limit?')
  t.equal(await hint('POST', '/v1/memory/upload?sessionId=x'), 'did you mean session_id?')
  t.equal(await hint('POST', '/v1/memory/search?limit=5'), 'send limit in the body')
  t.equal(await hint('POST', '/v1/memory/search?teirs=1'), 'did you mean tiers, in the body?')
  t.equal(
    await hint('GET', '/v1/account/policy?from=2026-01-01'),
    'this endpoint takes no query parameters',
  )
})

t.test('400: what could be meant to filter or to page; other words are named', async t => {
  const client = await fresh()
  const meant: Record<string, string> = {
    '/v1/memory/list':
      'next_cursor offset page skip query importance min_imp role before starting_after tiers',
    '/v1/account/usage/report': 'usr userid key offset page',
    '/v1/operations': 'filter where per_page mem_id',
  }
  for (const [path, names] of Object.entries(meant)) {
    for (const name of names.split(' ')) {
      const { status, body } = await client.get(`${path}?${name}=2`)
      t.match({ status, body }, { status: 400, body: { hint: String } }, `${path}?${name}`)
    }
    for (const name of ['_', 'cb', 'utm_source', 'lang', 'version', 'api_version']) {
      const { status, headers } = await client.get(`${path}?${name}=2`)
      t.equal(status, 200, `${path}?${name}`)
      t.equal(headers.get('x-memory-ignored-fields'), name)
    }
  }
  const many = Array.from({ length: 60 }, (_, index) => `word${index}=1`).join('&')
  t.equal((await client.get(`/v1/memory/list?${many}`)).status, 200)
  const unused = { from: '2026-01-01', where: {}, min_importance: 5, min_score: 0.5 }
  const found = await client.post('/v1/memory/search', { query: 'ferry', limit: 1, ...unused })
  t.equal(found.status, 200)
  t.equal(found.headers.get('x-memory-ignored-fields'), Object.keys(unused).join(', '))
})

t.test('a dry run never does the real thing', async t => {
  const [from, to] = [await fresh(), await buildKey(backend)]
  const target = createTestClient(base, to)
  await from.post('/v1/memory/ingest?wait=true', said('the ferry leaves at noon'))
  const all = { destination_key: to }
  const matching = { ...all, queries: ['when does the ferry leave?'], threshold: 0.1 }
  for (const [path, body] of [
    ['/v1/memory/transfer', all],
    ['/v1/memory/graft', matching],
  ] as const) {
    for (const [query, dryRun] of [
      ['', true],
      ['?dry_run=true', undefined],
      ['?dry_run=1', null],
      ['?dry_run=true', true],
    ] as const) {
      const previewed = await from.post(path + query, { ...body, dry_run: dryRun })
      t.match(previewed, { status: 200, body: { dry_run: true, count: 1 } }, path + query)
    }
    for (const dryRun of ['true', 'yes', 1, 0, 'false', {}]) {
      const refused = await from.post(path, { ...body, dry_run: dryRun })
      t.match(refused, { status: 400, body: { error: /dry_run must be true or false/ } })
    }
    t.equal((await from.post(`${path}?dry_run=true`, { ...body, dry_run: false })).status, 400)
    t.equal((await from.post(`${path}?dry-run=true`, body)).status, 400)
  }
  t.equal((await target.send('POST', '/v1/memory/upload?dry_run=true', lines({}))).status, 400)
  t.match((await target.get('/v1/memory/stats')).body, { memories: 0 })
  t.match((await from.post('/v1/memory/transfer', { ...all, dry_run: null })).body, { copied: 1 })
})

t.test('1 and 0 are booleans in a query', async t => {
  const client = await fresh()
  t.equal((await client.post('/v1/memory/ingest?wait=1', said('a first'))).status, 200)
  t.equal((await client.post('/v1/memory/ingest?wait=2', said('a second'))).status, 400)
  const line = { ...lines(), body: JSON.stringify((await client.get('/v1/memory/export')).body[0]) }
  const file = { ...lines(), body: line.body }
  t.match((await client.send('POST', '/v1/memory/import?dry_run=1', file)).body, { dry_run: true })
  t.equal((await client.get('/v1/memory/export?vectors=1&sessions=0')).body.length, 1)
  t.match((await client.get('/v1/keys?active=1')).body.items.length, 1)
  t.match((await client.send('DELETE', '/v1/memory?reset=1')).body, { reset: true })
})

t.test('session_id and embeddings: header, body or query, by every endpoint', async t => {
  const client = await fresh()
  const session = 'größe 7'
  const named = new URLSearchParams({ session_id: session, embeddings: 'local' }).toString()
  const header = { 'x-session-id': Buffer.from(session).toString('latin1') }
  await client.post('/v1/memory/ingest?wait=true', said('the core remembers'))
  const inSession = await client.post(`/v1/memory/ingest?wait=true&${named}`, said('the ferry'))
  t.equal(inSession.status, 200)
  const file = lines({ content: 'the ferry is blue' })
  const uploaded = await client.send('POST', `/v1/memory/upload?${named}`, file)
  t.match(uploaded.body, { vault: 'session', stats: { stored: 1 } })

  const reads: [string, object, (body: Record<string, unknown>) => unknown][] = [
    ['/v1/memory/search', { query: 'the ferry', limit: 9 }, body => body.totalMemories],
    ['/v1/memory/date-search', { from: '2020-01-01' }, body => body.count],
    ['/v1/memory/warmup', {}, body => body.memories_loaded],
  ]
  for (const [path, body, count] of reads) {
    const place = { session_id: session, embeddings: 'local' }
    for (const answer of [
      await client.post(path, { ...body, ...place }),
      await client.post(`${path}?${named}`, body),
      await client.post(path, body, { ...header, 'x-embedding-model': 'local' }),
      await client.post(`${path}?${named}`, { ...body, ...place }, header),
    ]) {
      t.equal(answer.status, 200, path)
      t.equal(count(answer.body), 2, path)
    }
    const other = await client.post(`${path}?${named}`, { ...body, session_id: 'another' })
    t.match(other, { status: 400, body: { error: /different sessions/ } }, path)
    const model = await client.post(`${path}?${named}`, { ...body, embeddings: 'openai/x' })
    t.match(model, { status: 400, body: { error: /different models/ } }, path)
  }
  t.equal((await client.get(`/v1/memory/export?${named}`)).body.length, 2)
  const lent = await client.post(`/v1/memory/consolidate/checkout?${named}`, { tier: 1 })
  t.match(lent, { status: 200, body: { count: 1 } })
  const both = await client.post(`/v1/memory/prepare?${named}`, said('which ferry?'), header)
  t.equal(both.status, 200)

  t.equal((await client.send('DELETE', '/v1/memory?session_id=')).status, 400)
  const cleared = await client.send(
    'DELETE',
    `/v1/memory?session_id=${encodeURIComponent(session)}`,
  )
  t.match(cleared.body, { session_id: session, deleted: 2 })
  t.match((await client.get('/v1/memory/stats')).body, { memories: 1 })
})
