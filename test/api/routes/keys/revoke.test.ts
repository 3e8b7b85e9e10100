import t from 'tap'
import { countVault } from '#shared/vault/delete/delete-cleared.mongo.ts'
import { maskKey } from '#shared/access/key.ts'
import { buildAdmin, buildOrg } from '#test/support/start/admin.ts'
import { createTestClient, type TestClient } from '#test/support/start/api.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { resolveCaller } from '#test/support/start/insert-memories.ts'
import { webhookDeliveriesOf } from '#test/support/checks/observe-jobs.ts'
import { isSinceStart } from '#test/support/samples/recent.ts'
import { readPages, startService } from '#test/support/start/start-service.ts'

const { backend, base, newClient } = await startService(t)
const path = '/v1/keys'
const told = { messages: [{ role: 'user', content: 'the spare key is with Otto' }] }

type Listed = { id: string; masked_key: string; name: string; current: boolean }

const listed = async (client: TestClient, asked = ''): Promise<Listed[]> =>
  (await client.get(path + asked)).body.items

const minted = async (client: TestClient, name: string) => {
  const { body } = await client.post(path, { name })
  const { id } = (await listed(client)).find(key => key.masked_key === maskKey(body.key))!
  return { id, key: body.key as string, client: createTestClient(base, body.key as string) }
}

const revoke = (client: TestClient, id: string, asked = '') =>
  client.send('DELETE', `${path}/${id}${asked}`)

t.test('200: the keys of the account, newest first, none of them whole', async t => {
  const { key: adminKey, memoryKey } = await buildAdmin(backend)
  const client = createTestClient(base, memoryKey)
  const phone = await minted(client, 'Phone')
  const { status, body } = await client.get(path)
  t.equal(status, 200)
  t.match(body, {
    items: [
      { masked_key: maskKey(phone.key), name: 'Phone', active: true, current: false },
      { masked_key: maskKey(memoryKey), active: true, current: true, rotated_at: null },
    ],
    has_more: false,
    next_cursor: null,
  })
  t.notMatch(JSON.stringify(body), phone.key)
  t.equal(body.items[0].last_used_at, null)
  await phone.client.post('/v1/memory/ingest?wait=true', told)
  t.ok(isSinceStart((await client.get(path)).body.items[0].last_used_at))

  const ofAdmin = (await createTestClient(base, adminKey).get(path)).body.items
  t.same(
    ofAdmin.map(({ name, current }: Listed) => [name, current]),
    [
      ['Phone', false],
      ['test', false],
    ],
    'the admin of the account sees them too',
  )
})

t.test('200: pages that meet, and a cursor of nobody else', async t => {
  const client = await newClient()
  const names = Array.from({ length: 6 }, (_, n) => `key ${n}`)
  for (const name of names) await client.post(path, { name })
  const pages = await readPages<Listed>(client, `${path}?limit=3`)
  t.same(
    pages.flat().map(({ name }) => name),
    [...names.toReversed(), 'test'],
  )
  const { next_cursor: cursor } = (await client.get(`${path}?limit=3`)).body
  t.equal((await (await newClient()).get(`${path}?cursor=${cursor}`)).status, 400)
  t.equal((await client.get(`${path}?active=true&cursor=${cursor}`)).status, 400)
})

t.test('200: a revoked key is refused from the next request on, and its vault stays', async t => {
  const client = await newClient()
  const phone = await minted(client, 'Phone')
  await phone.client.post('/v1/memory/ingest?wait=true', told)
  t.match(await revoke(client, phone.id), { status: 200, body: { deleted: true, id: phone.id } })
  t.equal((await phone.client.get('/v1/memory/stats')).status, 401)
  t.match(await listed(client, '?active=false'), [
    { id: phone.id, active: false, revoked_at: String },
  ])
  t.match(await listed(client, '?active=true'), [{ current: true }])

  const before = await listed(client)
  t.equal((await revoke(client, phone.id)).status, 200)
  t.same(await listed(client), before, 'revoked again it stays as it is')
  const exported = (await client.get('/v1/account/export')).body as { content?: string }[]
  t.ok(exported.some(({ content }) => content === told.messages[0]!.content))
})

t.test('the account’s events and its webhooks are told, once', async t => {
  const { key, ...client } = await newClient()
  const phone = await minted(client, 'Phone')
  const { body: webhook } = await client.post('/v1/account/webhooks', {
    url: 'https://example.com/hook',
    events: ['key.revoked'],
  })
  await revoke(client, phone.id)
  await revoke(client, phone.id)
  const events = (await client.get('/v1/account/events?action=key.revoked')).body.items
  t.match(events, [{ subject: maskKey(phone.key), actor: maskKey(key) }])
  t.equal(events.length, 1)
  const rows = await webhookDeliveriesOf(backend, webhook.id)
  t.match(rows, [
    { event: 'key.revoked', data: { key: maskKey(phone.key), name: 'Phone', key_id: phone.id } },
  ])
  t.equal(rows.length, 1)
})

t.test('409: a key does not end itself', async t => {
  const { key: adminKey, memoryKey } = await buildAdmin(backend)
  const client = createTestClient(base, memoryKey)
  const [own] = await listed(client)
  for (const asked of ['', '?erase=true']) {
    t.match(await revoke(client, own!.id, asked), { status: 409, body: { hint: /rotate/ } })
  }
  t.equal((await client.get('/v1/memory/stats')).status, 200)
  t.equal((await revoke(createTestClient(base, adminKey), own!.id)).status, 200, 'its admin does')
  t.equal((await client.get('/v1/memory/stats')).status, 401)
})

t.test('404: keys of members, as those of nobody', async t => {
  const { admin, path: org, key: adminKey } = await buildOrg(backend, base)
  const member = (await admin.post(`${org}/keys`, { team_member_id: 'ann' })).body
  const owner = createTestClient(base, adminKey)
  const { body } = await revoke(owner, crypto.randomUUID())
  t.match(await revoke(owner, member.id), { status: 404, body })
  const names = (await listed(owner)).map(({ masked_key }) => masked_key)
  t.notOk(names.includes(maskKey(member.key_id)), 'keys of members are not listed')
})

t.test('200: with erase the vault goes too, from both stores', async t => {
  const client = await newClient()
  const phone = await minted(client, 'Phone')
  await phone.client.post('/v1/memory/ingest?wait=true', told)
  const { vault } = (await resolveCaller(backend, phone.key)).scope
  const ask = () =>
    client.send('DELETE', `${path}/${phone.id}?erase=true`, {
      headers: { 'idempotency-key': 'gone' },
    })
  const { status, body } = await ask()
  t.equal(status, 200)
  t.same((await ask()).body, body)
  t.equal((await phone.client.get('/v1/memory/stats')).status, 401)
  await waitUntil('it is erased', async () => {
    const { state } = (await client.get(`/v1/operations/${body.operation_id}`)).body
    return state === 'done'
  })
  t.equal(await countVault(backend.mongo, vault), 0)
  const key = (await listed(client)).find(({ id }) => id === phone.id)
  t.equal(key!.name, key!.masked_key, 'nor the name of whose it was')
  const exported = JSON.stringify((await client.get('/v1/account/export')).body)
  t.notMatch(exported, told.messages[0]!.content)
  t.equal((await client.get('/v1/memory/stats')).status, 200, 'its own vault is another')
})

t.test('409: a vault that another key opens is not erased, and that key not ended', async t => {
  const client = await newClient()
  const phone = await minted(client, 'Phone')
  await phone.client.post('/v1/memory/ingest?wait=true', told)
  const rotated = await phone.client.post(`${path}/rotate`, { grace_seconds: 60 })
  const refused = await revoke(client, phone.id, '?erase=true')
  t.match(refused, { status: 409, body: { error: /Another key/, hint: /erase/ } })
  t.equal((await phone.client.get('/v1/memory/stats')).status, 200)
  const successor = createTestClient(base, rotated.body.key)
  t.equal((await successor.get('/v1/memory/stats')).body.memories, 1)
  t.equal((await revoke(client, phone.id)).status, 200)
  t.equal((await successor.get('/v1/memory/stats')).body.memories, 1, 'it goes on')
})
