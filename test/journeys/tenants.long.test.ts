import t from 'tap'
import { contractDocument } from '#api/contract/document.ts'
import { createRouter as allRoutes } from '#api/routes/index.ts'
import { buildKey, createTestClient, startTestApi, startJobWorkers } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'
import { startEmbeddingProvider } from '#test/support/embedding-provider.ts'
import {
  buildTenant,
  createMissingTenant,
  type MissingTenant,
  type Tenant,
} from '#test/support/tenants.ts'

const provider = await startEmbeddingProvider(t)
const backend = await createTestBackend(t, { env: { OLLAMA_BASE_URL: provider.baseUrl } })
await startJobWorkers(backend)
const { base } = await startTestApi(t, backend)
const victim = await buildTenant(backend, base)
const stranger = await buildTenant(backend, base)

type Sent = [method: string, path: string, body?: unknown, headers?: Record<string, string>]

/** What a stranger asks of a route with ids, names and words that are the victim's, or nobody's. */
type Case = (whose: MissingTenant, words: string) => Sent[]

const lines = { 'content-type': 'application/x-ndjson' }
const inSession = ({ session }: MissingTenant) => ({ 'x-session-id': session })
const post = (path: string, body: unknown, headers = {}): Sent => ['POST', path, body, headers]
const webhooks = '/v1/account/webhooks'
const imported = (id: string, sources: string[]): string =>
  [
    { id, tier: 1, role: 'user', content: 'brought along', timestamp: 1, session_id: null },
    {
      id: stranger.reflection,
      tier: 2,
      role: 'system',
      content: 'brought too',
      timestamp: 1,
      session_id: null,
      importance: 3,
      sources,
    },
  ]
    .map(line => JSON.stringify(line))
    .join('\n')

const cases: Record<string, Case> = {
  'POST /v1/keys': () => [post('/v1/keys', { name: 'another' })],
  'POST /v1/keys/rotate': () => [],
  'POST /v1/keys/:memoryKeyId/remint': ({ keyId }) => [post(`/v1/keys/${keyId}/remint`, {})],
  'GET /v1/keys': ({ keysCursor }) => [
    ['GET', '/v1/keys'],
    ['GET', '/v1/keys?external_id=whose'],
    ['GET', `/v1/keys?limit=1&cursor=${keysCursor}`],
  ],
  'DELETE /v1/keys/:memoryKeyId': ({ keyId }) => [
    ['DELETE', `/v1/keys/${keyId}`],
    ['DELETE', `/v1/keys/${keyId}?erase=true`],
  ],
  'GET /v1/account/usage': () => [['GET', '/v1/account/usage']],
  'GET /v1/account/provider-keys': () => [['GET', '/v1/account/provider-keys']],
  'PUT /v1/account/provider-keys/:provider': () => [
    ['PUT', '/v1/account/provider-keys/mistral', { key: 'sk-of-the-stranger' }],
  ],
  'DELETE /v1/account/provider-keys/:provider': () => [
    ['DELETE', '/v1/account/provider-keys/together'],
  ],
  'GET /v1/account/policy': () => [['GET', '/v1/account/policy']],
  'PUT /v1/account/policy': () => [['PUT', '/v1/account/policy', { redaction: { mode: 'off' } }]],
  'POST /v1/account/webhooks': () => [
    post(webhooks, { url: 'https://stranger.example.com/', events: ['key.revoked'] }),
  ],
  'GET /v1/account/events': ({ eventsCursor }) => [
    ['GET', '/v1/account/events?limit=500'],
    ['GET', `/v1/account/events?limit=1&cursor=${eventsCursor}`],
  ],
  'GET /v1/account/export': () => [['GET', '/v1/account/export']],
  'POST /v1/account/erase': ({ key }) => [
    post('/v1/account/erase', { email: `${key.slice(3)}@example.com` }),
  ],
  'GET /v1/account/webhooks': () => [['GET', webhooks]],
  'GET /v1/account/webhooks/:webhookId': ({ webhook }) => [['GET', `${webhooks}/${webhook}`]],
  'PATCH /v1/account/webhooks/:webhookId': ({ webhook }) => [
    ['PATCH', `${webhooks}/${webhook}`, { active: false }],
  ],
  'DELETE /v1/account/webhooks/:webhookId': ({ webhook }) => [['DELETE', `${webhooks}/${webhook}`]],
  'GET /v1/account/webhooks/:webhookId/deliveries': ({ webhook }) => [
    ['GET', `${webhooks}/${webhook}/deliveries`],
  ],
  'POST /v1/account/webhooks/:webhookId/deliveries/:deliveryId/replay': theirs => [
    post(`${webhooks}/${theirs.webhook}/deliveries/${theirs.delivery}/replay`, {}),
  ],
  'POST /v1/account/webhooks/:webhookId/secret': ({ webhook }) => [
    post(`${webhooks}/${webhook}/secret`, {}),
  ],
  'POST /v1/account/webhooks/:webhookId/test': ({ webhook }) => [
    post(`${webhooks}/${webhook}/test`, {}),
  ],
  'GET /v1/models': () => [['GET', '/v1/models']],
  'POST /v1/memory/ingest': (whose, words) => [
    post('/v1/memory/ingest?wait=true', {
      messages: [{ role: 'user', content: 'hello' }],
      session_id: whose.session,
    }),
    post('/v1/memory/ingest', { messages: [{ role: 'system', content: words }] }),
  ],
  'POST /v1/memory/prepare': (whose, words) =>
    [{}, { session_id: whose.session }].map(extra =>
      post('/v1/memory/prepare', { messages: [{ role: 'user', content: words }], ...extra }),
    ),
  'POST /v1/memory/search': (whose, words) =>
    [{}, inSession(whose)].map(headers =>
      post('/v1/memory/search', { query: words, limit: 200 }, headers),
    ),
  'POST /v1/memory/date-search': (whose, words) =>
    [{}, { query: words }, { query: words, tiers: [2, 3] }].flatMap(extra =>
      [{}, inSession(whose)].map(headers =>
        post('/v1/memory/date-search', { from: '2000-01-01', ...extra }, headers),
      ),
    ),
  'GET /v1/memory/list': (whose, words) => [
    ['GET', '/v1/memory/list?limit=200'],
    ['GET', `/v1/memory/list?limit=200&search=${words.slice(0, 8)}`],
    ['GET', `/v1/memory/list?limit=1&cursor=${whose.listCursor}`],
  ],
  'GET /v1/memory/profile': () => [['GET', '/v1/memory/profile?limit=500']],
  'GET /v1/memory/sessions': ({ sessionsCursor }) => [
    ['GET', '/v1/memory/sessions?limit=200'],
    ['GET', `/v1/memory/sessions?limit=1&cursor=${sessionsCursor}`],
  ],
  'GET /v1/shares': () => [['GET', '/v1/shares']],
  'PATCH /v1/shares': () => [['PATCH', '/v1/shares', { shares: false }]],
  'DELETE /v1/shares/:statementId': ({ raw }) => [['DELETE', `/v1/shares/${raw}`]],
  'POST /v1/memory/edit': ({ raw, reflection }) =>
    [raw, reflection].map(id => post('/v1/memory/edit', { memory_id: id, text: 'mine now' })),
  'POST /v1/memory/inspect': ({ raw, reflection }) =>
    [raw, reflection].map(id => post('/v1/memory/inspect', { memory_id: id })),
  'POST /v1/memory/delete-ids': ({ raw, reflection }) => [
    post('/v1/memory/delete-ids', { ids: [raw, reflection] }),
  ],
  'POST /v1/memory/consolidate/checkout': () => [
    post('/v1/memory/consolidate/checkout', { tier: 2 }),
  ],
  'POST /v1/memory/consolidate/commit': ({ batch }) => [
    post('/v1/memory/consolidate/commit', {
      batch_id: batch,
      entries: [{ text: 'mine now', importance: 1 }],
    }),
  ],
  'POST /v1/memory/transfer': ({ key }) =>
    [key.slice(0, 20), `${key}:off`].map(destination_key =>
      post('/v1/memory/transfer', { destination_key }),
    ),
  'POST /v1/memory/graft': ({ key }, words) => [
    post('/v1/memory/graft', { destination_key: `${key}:read`, queries: [words] }),
    post('/v1/memory/graft', {
      destination_key: spare,
      queries: [words],
      threshold: 0,
      dry_run: true,
    }),
  ],
  'POST /v1/memory/upload': () => [
    ['POST', '/v1/memory/upload', '{"content":"a line of the stranger"}', lines],
  ],
  'GET /v1/memory/export': ({ session }) => [
    ['GET', '/v1/memory/export'],
    ['GET', `/v1/memory/export?session_id=${encodeURIComponent(session)}`],
  ],
  'POST /v1/memory/import': ({ raw, reflection }) =>
    ['skip', 'replace'].flatMap((policy): Sent[] => [
      ['POST', `/v1/memory/import?dry_run=true&on_conflict=${policy}`, imported(raw, []), lines],
      ['POST', `/v1/memory/import?on_conflict=${policy}`, imported(raw, [reflection]), lines],
    ]),
  'POST /v1/memory/reembed': () => [post('/v1/memory/reembed', { embeddings: 'ollama/double' })],
  'GET /v1/memory/stats': () => [['GET', '/v1/memory/stats']],
  'GET /v1/memory/:key/stats': ({ key }) =>
    [key, `${key}:read`, key.slice(0, 20)].map(some => ['GET', `/v1/memory/${some}/stats`]),
  'POST /v1/memory/warmup': whose => [post('/v1/memory/warmup', {}, inSession(whose))],
  'DELETE /v1/memory': whose => [['DELETE', '/v1/memory', undefined, inSession(whose)]],
  'GET /v1/operations': ({ operationsCursor }) => [
    ['GET', '/v1/operations?limit=200'],
    ['GET', `/v1/operations?limit=1&cursor=${operationsCursor}`],
  ],
  'GET /v1/operations/:id': ({ operation, batch }) =>
    [operation, batch].map(id => ['GET', `/v1/operations/${id}`]),
  'DELETE /v1/operations/:id': ({ operation, batch }) =>
    [operation, batch].map(id => ['DELETE', `/v1/operations/${id}`]),
}

/** The first key of an account in which nothing happens. */
const quiet = await buildKey(backend)

/** A second vault of the stranger's. */
const spare = (await stranger.client.post('/v1/keys', { name: 'spare' })).body.key as string

/** Held apart by tests of their own: organizations share on purpose, calls that are passed on, and their traces. */
const elsewhere =
  /^\/v1\/orgs|^\/v1\/traces|^\/v1(beta)?\/models\/|^\/v1\/(chat|messages|responses|audio|images|embeddings)\b/

const served = new Set(
  allRoutes(backend).stack.flatMap(({ methods, path }) =>
    methods.map(method => `${method} ${String(path)}`),
  ),
)
const routes = Object.values(contractDocument.endpoints).filter(
  ({ auth, method, path }) =>
    served.has(`${method} ${path}`) && auth.includes('memory-key') && !elsewhere.test(path),
)

/** Asks as somebody; the answer in bytes, what differs from one request to the next left out. */
async function ask({ client, key }: Pick<Tenant, 'client' | 'key'>, sent: Sent, whose: object) {
  const [method, path, body, headers = {}] = sent
  const checked = await client.send(method, path, { headers, ...(body !== undefined && { body }) })
  const response = await fetch(base + path, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  const asked = Object.values(whose).map(String)
  const blurred = asked
    .toSorted((one, other) => other.length - one.length)
    .reduce((left, value) => left.replaceAll(value, '(it)'), text)
  return {
    status: checked.status,
    all: JSON.stringify([...response.headers, text, ...checked.headers, checked.body]),
    bytes: `${response.status} ${blurred
      .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '(id)')
      .replaceAll(/\bmk_[\w…]+/g, '(key)')
      // That it was exported is an event, so that the next export has one more.
      .replaceAll(/\{"type":"(account_event|end)"[^\n]*\n/g, '')
      .replaceAll(/whsec_[A-Za-z0-9+/=]+/g, '(secret)')
      .replaceAll(/"\d{4}-\d\d-\d\dT[^"]+"/g, '(time)')
      .replaceAll(/"(\w+_ms|score|timestamp)":[\d.]+/g, '"$1":(number)')}`,
  }
}

/** Everything of a tenant, as the tenant sees it. */
const viewOf = async ({ client, session, graft }: Tenant): Promise<string> => {
  const seen = await Promise.all([
    client.get('/v1/memory/export'),
    client.get('/v1/memory/stats'),
    client.get(`/v1/operations/${graft}`),
    client.get('/v1/account/provider-keys'),
    client.get('/v1/account/webhooks'),
    client.post('/v1/memory/search', { query: 'mat', limit: 20 }),
    client.post('/v1/memory/search', { query: 'trip', limit: 9 }, { 'x-session-id': session }),
  ])
  // The first delivery of a message may fail between the two views.
  return JSON.stringify(seen.map(({ status, body }) => [status, body])).replaceAll(
    /"failing_since":(null|"[^"]*")/g,
    '',
  )
}

t.test('every route that opens with a Memory Key has a case here', async t => {
  const named = routes.map(({ method, path }) => `${method} ${path}`)
  t.same(named.toSorted(), Object.keys(cases).toSorted())
})

t.test('404 and not_found of what is another’s are those of what never was', async t => {
  const before = await viewOf(victim)
  t.ok(before.includes(victim.canary), 'it can see itself')
  for (const [name, sentOf] of Object.entries(cases)) {
    const nobody = createMissingTenant()
    const theirs = sentOf(victim, `${victim.canary} keeps a key`)
    const nobodys = sentOf(nobody, 'nobody keeps a key')
    for (const [n, sent] of theirs.entries()) {
      // The same state for both: what a vault holds must not depend on who was asked for first.
      const asking = await freshStranger(name)
      const control = await freshStranger(name)
      const answer = await ask(asking, sent, { ...victim, words: `${victim.canary} keeps a key` })
      const other = await ask(control, nobodys[n]!, { ...nobody, words: 'nobody keeps a key' })
      t.equal(answer.bytes, other.bytes, `${name}: ${sent[0]} ${sent[1].split('?')[0]}`)
      const echoed = answer.all.replaceAll(`${victim.canary} keeps a key`, '')
      if (!echoesSession.has(name)) t.notOk(echoed.includes(victim.canary), `${name}: no canary`)
      t.notOk(echoed.includes('under the mat'), `${name}: none of its words`)
    }
  }
  t.equal(await viewOf(victim), before, 'and nothing of it has changed')
})

/** What these answer of a session is the name they were given. */
const echoesSession = new Set(['POST /v1/memory/search', 'DELETE /v1/memory'])

/** A tenant with a memory, apart from all others: alike for every case. */
async function freshStranger(name: string): Promise<Pick<Tenant, 'client' | 'key'>> {
  if (name.startsWith('GET ')) return { client: createTestClient(base, quiet), key: quiet }
  const key = await buildKey(backend)
  const client = createTestClient(base, key)
  const messages = [{ role: 'user', content: 'a stranger was here' }]
  await client.post('/v1/memory/ingest?wait=true', { messages })
  return { client, key }
}

t.test('a key minted for another user of the same account is a stranger too', async t => {
  const before = await viewOf(victim)
  for (const [name, sentOf] of Object.entries(cases)) {
    // Whoever has the whole key of another vault of the account may read its numbers.
    if (name === 'GET /v1/memory/:key/stats') continue
    const nobody = createMissingTenant()
    const theirs = sentOf(victim, `${victim.canary} keeps a key`)
    const nobodys = sentOf(nobody, 'nobody keeps a key')
    for (const [n, sent] of theirs.entries()) {
      const words = `${victim.canary} keeps a key`
      const answer = await ask(await userOf(victim), sent, { ...victim, words })
      const control = { ...nobody, words: 'nobody keeps a key' }
      const other = await ask(await userOf(stranger), nobodys[n]!, control)
      const title = `${name}: ${sent[0]} ${sent[1].split('?')[0]}`
      t.equal(answer.bytes, other.bytes, title)
      const echoed = answer.all.replaceAll(`${victim.canary} keeps a key`, '')
      if (!echoesSession.has(name)) t.notOk(echoed.includes(victim.canary), `${name}: no canary`)
      t.notOk(echoed.includes('under the mat'), `${name}: none of its words`)
    }
  }
  t.equal(await viewOf(victim), before, 'and nothing of it has changed')
})

/** A user of a tenant, who has an empty vault. */
async function userOf({ client }: Tenant): Promise<Pick<Tenant, 'client' | 'key'>> {
  const { key } = (await client.post('/v1/keys')).body as { key: string }
  return { client: createTestClient(base, key), key }
}

t.test('a tenant that was asked everything still sees only itself', async t => {
  const view = await viewOf(stranger)
  t.ok(view.includes(stranger.canary))
  t.notOk(view.includes(victim.canary))
  const rotated = await stranger.client.post('/v1/keys/rotate')
  t.equal(rotated.status, 201)
  const anew = {
    ...stranger,
    key: rotated.body.key,
    client: createTestClient(base, rotated.body.key),
  }
  t.notOk((await viewOf(anew)).includes(victim.canary))
})
