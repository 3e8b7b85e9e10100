import t from 'tap'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { maskKey } from '#shared/access/key.ts'
import { createTestClient, startTestApi, type TestClient } from '#test/support/start/api.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { ageRows } from '#test/support/checks/alter.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base, newClient } = await startService(t)
const told = { messages: [{ role: 'user', content: 'the spare key is with Otto' }] }

async function newUser(): Promise<{ key: string; client: TestClient }> {
  const { key, ...client } = await newClient()
  await client.post('/v1/memory/ingest?wait=true', told)
  return { key, client }
}

const rotate = (client: TestClient, idempotency?: string, body: object = {}) =>
  client.post('/v1/keys/rotate', body, idempotency ? { 'idempotency-key': idempotency } : {})

const rememberedBy = async (key: string): Promise<string[]> =>
  (await createTestClient(base, key).get('/v1/memory/list')).body.items.map(
    ({ text }: { text: string }) => text,
  )

t.test('201: another key has the vault, and the one before it none any more', async t => {
  const { key, client } = await newUser()
  const { status, body } = await rotate(client, undefined, { name: 'Second' })
  t.equal(status, 201)
  t.match(body, { key: /^mk_[0-9A-Za-z]{32}$/, name: 'Second', previous_key: maskKey(key) })
  t.equal((await client.get('/v1/memory/stats')).status, 401)
  t.same(await rememberedBy(body.key), ['the spare key is with Otto'])
})

t.test('201 again: an answer that was lost, though the old key has ended by it', async t => {
  const { key, client } = await newUser()
  const first = await rotate(client, 'lost')
  t.equal((await client.get('/v1/memory/stats')).status, 401)
  const again = await rotate(client, 'lost')
  t.equal(again.status, 201)
  t.same(again.body, first.body)
  t.same(await rememberedBy(again.body.key), ['the spare key is with Otto'])

  t.equal((await rotate(client)).status, 401, 'without Idempotency-Key')
  t.equal((await rotate(client, 'another')).status, 401)
  t.equal((await rotate(client, 'lost', { name: 'x' })).status, 401, 'for another request')
  t.equal((await rotate(createTestClient(base, `${key}:read`), 'lost')).status, 401)
  t.equal((await rotate(await newClient(), 'lost')).status, 201)
  const minted = await client.post('/v1/keys', {}, { 'idempotency-key': 'lost' })
  t.equal(minted.status, 401, 'on no other route')
})

t.test('401: a key that was revoked after its rotation hears nothing', async t => {
  const { client } = await newUser()
  const { body } = await rotate(client, 'then revoked', { grace_seconds: 60 })
  const successor = createTestClient(base, body.key)
  const { items } = (await successor.get('/v1/keys')).body
  const old = items.find(({ current }: { current: boolean }) => !current)
  t.equal((await successor.send('DELETE', `/v1/keys/${old.id}`)).status, 200)
  t.equal((await rotate(client, 'then revoked', { grace_seconds: 60 })).status, 401)
})

t.test('401: a day later the answer is forgotten', async t => {
  const { client } = await newUser()
  await rotate(client, 'yesterday')
  await ageRows(backend, 'idempotency', '25 hours', { idempotency: 'yesterday' })
  t.equal((await rotate(client, 'yesterday')).status, 401)
})

t.test('201 again: the connection was lost behind the commit', async t => {
  const { key, client } = await newUser()
  const { postgres } = backend
  const cut: Backend['postgres'] = {
    ...postgres,
    async transaction(work) {
      await postgres.transaction(work)
      throw new Refusal('unavailable', 'The database is out of reach')
    },
  }
  const shaken = await startTestApi(t, { ...backend, postgres: cut }, key)
  t.equal((await rotate(shaken, 'cut')).status, 503)
  t.equal((await client.get('/v1/memory/stats')).status, 401, 'it was rotated by then')
  const again = await rotate(client, 'cut')
  t.equal(again.status, 201)
  t.same(await rememberedBy(again.body.key), ['the spare key is with Otto'])
})

t.test('403: in its time of grace a key makes and ends no others, and still serves', async t => {
  const { client } = await newUser()
  const first = await rotate(client, 'grace', { grace_seconds: 60 })
  t.equal(first.status, 201)
  t.equal((await client.get('/v1/memory/stats')).status, 200)
  for (const path of ['/v1/keys', '/v1/keys/rotate']) {
    const refused = await client.post(path, { name: 'for ever' })
    t.match(refused, { status: 403, body: { error: /rotated/, hint: /took its place/ } }, path)
  }
  const successor = (await client.get('/v1/keys')).body.items.find(
    ({ rotated_at }: { rotated_at: string | null }) => rotated_at === null,
  )
  t.equal((await client.send('DELETE', `/v1/keys/${successor.id}`)).status, 403)
  t.same((await rotate(client, 'grace', { grace_seconds: 60 })).body, first.body, 'sent again')
})

t.test('twenty rotations of a key at once make one', async t => {
  const { client } = await newUser()
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => rotate(client, undefined, { grace_seconds: 60 })),
  )
  t.equal(answers.filter(({ status }) => status === 201).length, 1)
  t.ok(answers.every(({ status }) => status === 201 || status === 403))
})

t.test('200: usage is that of the vault, whichever of its keys asks', async t => {
  const { client } = await newUser()
  const used = async (who: TestClient) => (await who.get('/v1/account/usage')).body
  const before = await used(client)
  t.equal(before.total_requests, 1)
  const { body } = await rotate(client, undefined, { grace_seconds: 60 })
  const successor = createTestClient(base, body.key)
  const { key: _, ...sums } = await used(successor)
  t.match(sums, { total_requests: 1, total_memory_tokens: before.total_memory_tokens })
  await successor.post('/v1/memory/ingest?wait=true', told)
  await waitUntil('both', async () => (await used(client)).total_requests === 2)
  const { key } = (await successor.post('/v1/keys')).body
  t.equal(
    (await used(createTestClient(base, key))).total_requests,
    0,
    'another vault is another sum',
  )
})
