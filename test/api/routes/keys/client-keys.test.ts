import t from 'tap'
import { maskKey } from '#shared/access/key.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { buildOrg } from '#test/support/start/admin.ts'
import { connectMcp } from '#test/support/start/mcp.ts'
import { defaultReply } from '#test/support/doubles/model-provider/fixtures.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { startJobWorkers } from '#test/support/start/api.ts'
import { callModel, proxyDialects } from '#test/support/samples/proxy-dialects.ts'

/** Keys that clients get: for the vault of the key that makes them, with fewer rights than it has. */

const { backend, base, owner, ownerKey, provider } = await startProxyFixture(t)
await startJobWorkers(backend)
const told = (content: string) => ({ messages: [{ role: 'user', content }] })
const as = (user: string) => ({ 'x-memory-user': user })
const stats = '/v1/memory/stats'
const ingest = '/v1/memory/ingest?wait=true'

const mint = async (rights: 'memory' | 'users', by = owner) => {
  const made = await by.post('/v1/keys', { name: 'Codex', rights })
  t.match(made, { status: 201, body: { name: 'Codex', rights } })
  return {
    id: made.body.id as string,
    key: made.body.key as string,
    client: createTestClient(base, made.body.key),
  }
}

t.test('memory: the vault of the key that made it, and nothing of the account', async t => {
  const { id, key, client } = await mint('memory')
  await client.post(ingest, told('the spare key is with Otto'))
  t.equal((await owner.get(stats)).body.memories, 1)
  const { items } = (await owner.get('/v1/keys')).body
  t.match(items, [{ id, rights: 'memory', name: 'Codex' }, { rights: 'all' }])
  for (const refused of [
    client.post('/v1/keys', {}),
    client.post('/v1/keys', { rights: 'memory' }),
    client.post('/v1/keys/rotate'),
    client.get('/v1/keys'),
    client.get('/v1/account/policy'),
    client.get('/v1/account/export'),
    client.send('DELETE', `/v1/keys/${items[1].id}`),
    client.send('DELETE', `/v1/keys/${id}?erase=true`),
    client.get(stats, as('ada')),
  ]) {
    t.match(await refused, { status: 403, body: { error: String } })
  }
  t.match(await owner.post(`/v1/keys/${id}/remint`), {
    status: 409,
    body: { error: /for a client/ },
  })
  t.match(await client.send('DELETE', `/v1/keys/${id}`), {
    status: 200,
    body: { deleted: true, id },
  })
  t.equal((await createTestClient(base, key).get(stats)).status, 401, 'it ends itself')
  t.equal((await owner.get(stats)).body.memories, 1)
})

t.test('users: the vaults of users by X-Memory-User, and none without', async t => {
  const { client, key } = await mint('users')
  await client.post(ingest, told('Ada has a red canoe'), as('ada'))
  t.equal((await client.get(stats, as('ada'))).body.memories, 1)
  t.equal((await client.get(stats, as('bob'))).body.memories, 0)
  t.match((await owner.get('/v1/account/events?action=key.minted')).body.items[0], {
    external_id: 'bob',
    actor: maskKey(key),
  })
  const nobody = { status: 400, body: { error: /X-Memory-User is missing/, hint: /chat programs/ } }
  t.match(await client.get(stats), nobody)
  t.match(await client.post(ingest, told('hello')), nobody)
  t.match(await client.post('/v1/memory/search', { query: 'canoe', limit: 1 }), nobody)
  t.equal((await client.get('/v1/models')).status, 200, 'a list of models is of no vault')
  t.match(await client.get('/v1/account/policy', as('ada')), { status: 400 })
  t.equal((await client.get('/v1/account/policy')).status, 403)
  const mcp = await connectMcp(t, base, key, { headers: as('ada') })
  t.match(await mcp.callTool({ name: 'stats', arguments: {} }), {
    structuredContent: { memories: 1 },
  })
  const unnamed = await connectMcp(t, base, key)
  t.match(await unnamed.callTool({ name: 'stats', arguments: {} }), { isError: true })
})

t.test('users: a model call without a user is refused unless memory is off', async t => {
  const { key } = await mint('users')
  for (const dialect of proxyDialects) {
    const asked = provider.requests.length
    const refused = await callModel(base, key, dialect, 'hello?')
    t.equal(refused.status, 400)
    t.match(await refused.text(), /X-Memory-User is missing/)
    t.equal(provider.requests.length, asked)
    const off = { headers: { 'x-memory-mode': 'off' } }
    t.match(await (await callModel(base, key, dialect, 'hello?', off)).text(), defaultReply)
  }
})

t.test('a user makes keys of its own vault for clients; they end with it', async t => {
  const { body: ada } = await owner.post('/v1/keys', { external_id: 'eve' })
  const user = createTestClient(base, ada.key)
  t.equal((await user.post('/v1/keys', { rights: 'users' })).status, 403)
  const { client, key } = await mint('memory', user)
  await client.post(ingest, told('Eve has a blue canoe'))
  t.equal((await owner.get(stats, as('eve'))).body.memories, 1)
  t.match((await owner.post('/v1/keys', { external_id: 'eve' })).body, { key: ada.key })
  t.equal(
    (await owner.get(stats, as('eve'))).body.key,
    maskKey(ada.key),
    'the newest key is not theirs',
  )
  await owner.send('DELETE', `/v1/keys/${ada.id}`)
  t.equal((await createTestClient(base, key).get(stats)).status, 401)
  t.equal((await owner.get(stats, as('eve'))).status, 403)
})

t.test('400, 403: rights with an external_id, and of a member', async t => {
  const both = await owner.post('/v1/keys', { external_id: 'ada', rights: 'memory' })
  t.match(both, { status: 400, body: { error: /do not go together/ } })
  t.equal((await owner.post('/v1/keys', { rights: 'all' })).status, 400)
  const { path, admin } = await buildOrg(backend, base)
  const { body } = await admin.post(`${path}/keys`, { team_member_id: 'ada' })
  const member = createTestClient(base, body.memory_key)
  t.equal((await member.post('/v1/keys', { rights: 'memory' })).status, 403)
  t.equal(
    (await createTestClient(base, `${ownerKey}:read`).post('/v1/keys', { rights: 'memory' }))
      .status,
    403,
  )
})
