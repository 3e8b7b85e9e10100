import { request } from 'node:http'
import t from 'tap'
import { contractDocument } from '#api/contract/document.ts'
import { maskKey } from '#shared/access/key.ts'
import { mintId } from '#shared/core/ids.ts'
import { buildAdmin, buildOrg } from '#test/support/start/admin.ts'
import {
  buildKey,
  createTestClient,
  startTestApi,
  startJobWorkers,
  type TestClient,
} from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { connectMcp } from '#test/support/start/mcp.ts'

const backend = await createTestBackend(t)
await startJobWorkers(backend)
const { base } = await startTestApi(t, backend)
const path = '/v1/memory/stats'
const ingest = '/v1/memory/ingest?wait=true'
const told = (content: string) => ({ messages: [{ role: 'user', content }] })
const as = (user: string) => ({ 'x-memory-user': user })

const newOwner = async (): Promise<{ key: string; owner: TestClient }> => {
  const key = await buildKey(backend)
  return { key, owner: createTestClient(base, key) }
}

const search = async (client: TestClient, user: string): Promise<string[]> => {
  const asked = { query: 'where is the spare key', limit: 10 }
  const { body } = await client.post('/v1/memory/search', asked, as(user))
  return body.memories.map(({ content }: { content: string }) => content)
}

t.test('each user has a vault of their own, and the owner another', async t => {
  const { owner } = await newOwner()
  await owner.post(ingest, told('the spare key is with Otto'), as('ada'))
  await owner.post(ingest, told('the spare key is under the mat'), as('bob'))
  t.same(await search(owner, 'ada'), ['the spare key is with Otto'])
  t.same(await search(owner, 'bob'), ['the spare key is under the mat'])
  t.equal((await owner.get(path)).body.memories, 0)
  const { body: ada } = await owner.post('/v1/keys', { external_id: 'ada' })
  t.equal((await createTestClient(base, ada.key).get(path)).body.memories, 1)
  t.equal((await owner.get(path, as('ada'))).body.key, maskKey(ada.key))
})

t.test(
  'ingest, search and prepare take the user in the body; by another name it is a 400',
  async t => {
    const { owner } = await newOwner()
    const { body: minted } = await owner.post('/v1/keys', { rights: 'users' })
    const question = { query: 'where is the spare key', limit: 5 }
    for (const [client, user] of [
      [owner, 'ada'],
      [createTestClient(base, minted.key), 'bob'],
    ] as const) {
      const of = { memory_user: user }
      const once = { 'idempotency-key': 'once' }
      const stored = await client.post(ingest, { ...told(`the spare key of ${user}`), ...of }, once)
      t.equal(stored.status, 200)
      const found = (await client.post('/v1/memory/search', { ...question, ...of })).body
      t.match(found, { totalMemories: 1, memories: [{ content: `the spare key of ${user}` }] })
      t.same(await search(owner, user), [`the spare key of ${user}`])
      const asked = { ...told('where is the spare key?'), ...of }
      t.match((await client.post('/v1/memory/prepare', asked)).body.context, user)
      const differing = await client.post('/v1/memory/search', { ...question, ...of }, as('eve'))
      t.match(differing, { status: 400, body: { error: /different users/ } })
    }
    const { body: bob } = await owner.post('/v1/keys', { external_id: 'bob' })
    const foreign = createTestClient(base, bob.key)
    t.equal(
      (await foreign.post('/v1/memory/search', { ...question, memory_user: 'ada' })).status,
      403,
    )
    t.equal((await foreign.post('/v1/memory/search', { ...question, user: 'bob' })).status, 200)

    const bodies: [path: string, body: object][] = [
      [ingest, told('the spare key is gone')],
      ['/v1/memory/search', question],
      ['/v1/memory/prepare', told('where is the spare key?')],
      ['/v1/memory/date-search', { from: '2020-01-01' }],
    ]
    for (const [path, body] of bodies) {
      for (const named of [{ user: 'ada' }, { user_id: 'ada' }, { external_id: 'ada' }]) {
        const { status, body: refused } = await owner.post(path, { ...body, ...named })
        t.match({ status, refused }, { status: 400, refused: { hint: /X-Memory-User/ } }, path)
        t.equal((await owner.post(path, { ...body, ...named }, as('eve'))).status, 200, path)
      }
      for (const memory_user of [null, '', 'undefined', 7])
        t.equal((await owner.post(path, { ...body, memory_user })).status, 400, path)
    }
    t.equal((await owner.get(path)).body.memories, 0)
  },
)

t.test('first requests at once open one vault', async t => {
  const { owner } = await newOwner()
  const texts = Array.from({ length: 12 }, (_, n) => `note ${n}`)
  const answers = await Promise.all(texts.map(text => owner.post(ingest, told(text), as('ada'))))
  t.same(new Set(answers.map(({ status }) => status)), new Set([200]))
  t.equal((await owner.get(path, as('ada'))).body.memories, 12)
  t.equal((await owner.get('/v1/keys?external_id=ada')).body.items.length, 1)
})

t.test('an id in UTF-8, as bytes of the header, is that of the body', async t => {
  const { owner } = await newOwner()
  const { body } = await owner.post('/v1/keys', { external_id: 'René 京' })
  const bytes = Buffer.from('René 京').toString('latin1')
  t.equal((await owner.get(path, as(bytes))).body.key, maskKey(body.key))
  t.match(await owner.get(path, as('Ren\u00E9')), { status: 400, body: { error: /UTF-8/ } })
})

t.test('400: no id, which must not open the vault of the owner', async t => {
  const { key } = await newOwner()
  const statusOf = (user: string | string[]): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${key}`, 'x-memory-user': user }
      request(base + path, { headers }, response => resolve(response.resume().statusCode))
        .on('error', reject)
        .end()
    })
  for (const user of ['', '  ', 'undefined', 'x'.repeat(257), ['ada', 'bob']]) {
    t.equal(await statusOf(user), 400, JSON.stringify(user))
  }
  t.equal(await statusOf('ada'), 200)
})

t.test('403: keys that are no owner key may not name a user, not even their own', async t => {
  const { owner } = await newOwner()
  const { body: ada } = await owner.post('/v1/keys', { external_id: 'ada' })
  const { path: orgPath, admin } = await buildOrg(backend, base)
  const member = await admin.post(`${orgPath}/keys`, { team_member_id: 'ada' })
  const { users } = (await admin.get(`${orgPath}/users`)).body
  const standard = await admin.post(`${orgPath}/users/${users[0].user_id}/memory-key`)
  for (const key of [ada.key, member.body.memory_key, standard.body.memory_key]) {
    for (const user of ['ada', 'bob']) {
      const answer = await createTestClient(base, key).get(path, as(user))
      t.match(answer, { status: 403, body: { error: /names? users/, hint: /own vault/ } })
    }
  }
  t.equal((await owner.get('/v1/keys?external_id=bob')).body.items.length, 0)
})

t.test('an owner of another account meets a user of its own', async t => {
  const { owner } = await newOwner()
  const { owner: stranger } = await newOwner()
  await owner.post(ingest, told('the spare key is with Otto'), as('ada'))
  t.same(await search(stranger, 'ada'), [])
  t.not((await stranger.get(path, as('ada'))).body.key, (await owner.get(path, as('ada'))).body.key)
})

t.test('the suffix of the owner key narrows what is done for the user', async t => {
  const { key, owner } = await newOwner()
  await owner.post(ingest, told('the spare key is with Otto'), as('ada'))
  const reader = createTestClient(base, `${key}:read`)
  t.same(await search(reader, 'ada'), ['the spare key is with Otto'])
  t.match((await reader.post(ingest, told('more'), as('ada'))).body, { accepted: false })
  const writer = createTestClient(base, `${key}:write`)
  t.equal((await writer.post(ingest, told('more'), as('ada'))).status, 200)
  t.equal((await writer.get('/v1/memory/list', as('ada'))).status, 403)
  t.match(await reader.get(path, as('bob')), {
    status: 404,
    body: { hint: /:read makes no users/ },
  })
})

t.test('404: where the policy makes no users, unknown ones are none', async t => {
  const { owner } = await newOwner()
  t.equal((await owner.get('/v1/account/policy')).body.create_users, true)
  const put = (create_users: boolean) =>
    owner.send('PUT', '/v1/account/policy', { body: { create_users } })
  t.match(await put(false), { status: 200, body: { create_users: false, retention_days: null } })
  const refused = await owner.post(ingest, told('hello'), as('ada'))
  t.match(refused, { status: 404, body: { error: /no user/, hint: /policy.+POST \/v1\/keys/ } })
  t.equal((await owner.get('/v1/keys?external_id=ada')).body.items.length, 0)
  await owner.post('/v1/keys', { external_id: 'ada' })
  t.equal((await owner.post(ingest, told('hello'), as('ada'))).status, 200)
  t.match((await owner.get('/v1/account/events?action=policy.changed')).body.items, [{}])
  await put(true)
  t.equal((await owner.get(path, as('bob'))).status, 200)
})

t.test('403: a user whose key has ended, until it is replaced', async t => {
  const { owner } = await newOwner()
  await owner.post(ingest, told('the spare key is with Otto'), as('ada'))
  const [{ id }] = (await owner.get('/v1/keys?external_id=ada')).body.items
  await owner.send('DELETE', `/v1/keys/${id}`)
  for (const asked of [owner.get(path, as('ada')), owner.post(ingest, told('x'), as('ada'))]) {
    t.match(await asked, { status: 403, body: { error: /revoked/, hint: /remint/ } })
  }
  await owner.post(`/v1/keys/${id}/remint`)
  t.equal((await owner.get(path, as('ada'))).body.memories, 1)
})

t.test('an erased user gets an empty vault at the next request', async t => {
  const { owner } = await newOwner()
  await owner.post(ingest, told('the spare key is with Otto'), as('ada'))
  const [{ id }] = (await owner.get('/v1/keys?external_id=ada')).body.items
  await owner.send('DELETE', `/v1/keys/${id}?erase=true`)
  t.same(await search(owner, 'ada'), [])
  const [{ id: now }] = (await owner.get('/v1/keys?external_id=ada')).body.items
  t.not(now, id)
})

t.test('401: an ended owner key opens no vault of a user', async t => {
  const { key, owner } = await newOwner()
  await owner.post(ingest, told('hello'), as('ada'))
  const { body: next } = await owner.post('/v1/keys/rotate', { grace_seconds: 3_600 })
  t.equal((await owner.get(path, as('ada'))).body.memories, 1, 'in its grace it opens users')
  t.equal((await owner.get(path, as('bob'))).status, 404, 'and makes none')
  const [, old] = (
    await createTestClient(base, next.key).get('/v1/keys?active=true')
  ).body.items.filter(({ external_id }: { external_id: string | null }) => external_id === null)
  await createTestClient(base, next.key).send('DELETE', `/v1/keys/${old.id}`)
  t.equal((await createTestClient(base, key).get(path, as('ada'))).status, 401)
  t.equal((await createTestClient(base, next.key).get(path, as('ada'))).body.memories, 1)
})

t.test('400: what concerns the account is not done for a user', async t => {
  const { key: adminKey, memoryKey } = await buildAdmin(backend)
  const governed = Object.values(contractDocument.endpoints).filter(
    ({ needs, auth }) =>
      needs.includes('govern') ||
      needs.includes('mint') ||
      (auth.length === 1 && auth[0] === 'admin'),
  )
  t.ok(governed.length > 50)
  for (const { method, path: route, auth } of governed) {
    const target = route.replaceAll(/:\w+/g, () => mintId())
    const options = { headers: as('ada'), ...(method !== 'GET' && { body: { nonsense: true } }) }
    for (const key of auth.includes('memory-key') ? [memoryKey, adminKey] : [adminKey]) {
      const { status } = await createTestClient(base, key).send(method, target, options)
      t.ok(status === 400 || (key === adminKey && status === 401), `${method} ${route}: ${status}`)
    }
  }
})

t.test('usage, operations, events and Idempotency-Keys are the user’s', async t => {
  const { key, owner } = await newOwner()
  const header = { 'idempotency-key': 'turn-1' }
  const ofAda = await owner.post(ingest, told('hello'), { ...as('ada'), ...header })
  const ofBob = await owner.post(ingest, told('hello'), { ...as('bob'), ...header })
  t.not(ofAda.body.operation_id, ofBob.body.operation_id)
  t.same((await owner.post(ingest, told('hello'), { ...as('ada'), ...header })).body, ofAda.body)
  const { items } = (await owner.get('/v1/operations', as('ada'))).body
  t.match(items, [{ operation_id: ofAda.body.operation_id }])
  t.equal(items.length, 1)
  t.equal((await owner.get(`/v1/operations/${ofBob.body.operation_id}`, as('ada'))).status, 404)
  await backend.usage.flush()
  const usageOf = async (headers: Record<string, string>): Promise<number> =>
    (await owner.get('/v1/account/usage', headers)).body.total_requests
  t.equal(await usageOf(as('ada')), 1)
  t.equal(await usageOf({}), 0)

  await owner.send('DELETE', '/v1/memory', { headers: as('ada') })
  const { body: ada } = await owner.post('/v1/keys', { external_id: 'ada' })
  t.match((await owner.get('/v1/account/events?action=vault.cleared')).body.items, [
    { subject: maskKey(ada.key), external_id: 'ada', actor: maskKey(key) },
  ])
  t.equal((await owner.get(path, as('bob'))).body.memories, 1)
})

t.test('MCP: tools work on the vault of the user', async t => {
  const { key, owner } = await newOwner()
  const client = await connectMcp(t, base, key, { headers: as('ada') })
  const stored = { messages: [{ role: 'user', content: 'the spare key is with Otto' }] }
  t.notOk((await client.callTool({ name: 'store', arguments: stored })).isError)
  t.equal((await owner.get(path, as('ada'))).body.memories, 1)
  t.equal((await owner.get(path)).body.memories, 0)
})
