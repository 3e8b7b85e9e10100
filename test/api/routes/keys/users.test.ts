import { createHash } from 'node:crypto'
import t from 'tap'
import { verifyReceipt } from '#shared/accounts/erasure-receipt.ts'
import { hashKey, maskKey } from '#shared/access/key.ts'
import { buildAdmin } from '#test/support/start/admin.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { tableText } from '#test/support/checks/observe.ts'
import { webhookDeliveriesOf } from '#test/support/checks/observe-jobs.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base, newClient } = await startService(t)
const told = { messages: [{ role: 'user', content: 'the spare key is with Otto' }] }

const memoriesOf = async (key: string): Promise<number> =>
  (await createTestClient(base, key).get('/v1/memory/stats')).body.memories

t.test('201, then 200: the key of a user is made once and is the same every time', async t => {
  const owner = await newClient()
  const first = await owner.post('/v1/keys', { external_id: 'user-17', name: 'Ada' })
  t.match(first, { status: 201, body: { external_id: 'user-17', name: 'Ada' } })
  await createTestClient(base, first.body.key).post('/v1/memory/ingest?wait=true', told)
  const again = await owner.post('/v1/keys', { external_id: 'user-17', name: 'another' })
  t.equal(again.status, 200)
  t.same(again.body, first.body)
  const other = await owner.post('/v1/keys', { external_id: 'user-18' })
  t.equal(other.status, 201)
  t.equal(await memoriesOf(other.body.key), 0)
  t.equal(await memoriesOf(again.body.key), 1)
})

t.test('of requests at once one makes the user, and all get the same key', async t => {
  const owner = await newClient()
  const answers = await Promise.all(
    Array.from({ length: 12 }, () => owner.post('/v1/keys', { external_id: 'at once' })),
  )
  t.equal(new Set(answers.map(({ body }) => body.key)).size, 1)
  t.same(answers.map(({ status }) => status).toSorted(), [...Array(11).fill(200), 201])
  t.equal((await owner.get('/v1/keys?external_id=at%20once')).body.items.length, 1)
})

t.test('ids that look the same are one, others are not', async t => {
  const owner = await newClient()
  const keyOf = async (external_id: string): Promise<string> =>
    (await owner.post('/v1/keys', { external_id })).body.key
  const rene = await keyOf('René')
  t.equal(await keyOf('Rene\u0301'), rene)
  t.equal(await keyOf('  René '), rene)
  t.not(await keyOf('rené'), rene)
  t.not(await keyOf('Rene'), rene)
  const longest = '👩'.repeat(256)
  t.equal(await keyOf(longest), await keyOf(longest))
})

t.test('400: what is no id', async t => {
  const owner = await newClient()
  const words = ['undefined', 'NaN', 'null', '[object Object]']
  const refused = ['  ', 'a\nb', 'a\u2028b', '\uD800', ...words]
  for (const [n, external_id] of refused.entries()) {
    const { status, body } = await owner.post('/v1/keys', { external_id })
    t.equal(status, 400, `id ${n}`)
    t.match(body.error, /external_id/)
  }
  t.equal((await owner.get('/v1/keys')).body.items.length, 1, 'no user was made')
})

t.test('200: keys are found by the id of their user, ended ones too', async t => {
  const owner = await newClient()
  const { body: ada } = await owner.post('/v1/keys', { external_id: 'ada@example.com' })
  await owner.post('/v1/keys', { external_id: 'bob@example.com' })
  const rotated = await createTestClient(base, ada.key).post('/v1/keys/rotate')
  const path = '/v1/keys?external_id=ada%40example.com'
  t.match((await owner.get(path)).body.items, [
    { id: rotated.body.id, external_id: 'ada@example.com', active: true },
    { id: ada.id, external_id: 'ada@example.com', active: false },
  ])
  t.match((await owner.get(`${path}&active=true`)).body.items, [{ id: rotated.body.id }])
  t.same((await owner.get('/v1/keys?external_id=nobody')).body.items, [])
  t.match((await owner.get('/v1/keys')).body.items.at(-1), { external_id: null })
  const { body: now } = await owner.post('/v1/keys', { external_id: 'ada@example.com' })
  t.equal(now.key, rotated.body.key, 'a rotated key is handed out in its place')
})

t.test('403: only an owner key makes and reads the keys of users', async t => {
  const owner = await newClient()
  const { body: ada } = await owner.post('/v1/keys', { external_id: 'ada' })
  const answer = await createTestClient(base, ada.key).post('/v1/keys', { external_id: 'ada' })
  t.equal(answer.status, 403)
  const stranger = await newClient()
  const { body: theirs } = await stranger.post('/v1/keys', { external_id: 'ada' })
  t.not(theirs.key, ada.key, 'another account has a user of its own')
  t.same((await stranger.get('/v1/keys?external_id=ada')).body.items.length, 1)
})

t.test('the raw key is stored sealed alone, and reading it is an event', async t => {
  const { key, ...owner } = await newClient()
  const { body: ada } = await owner.post('/v1/keys', { external_id: 'ada' })
  await owner.post('/v1/keys', { external_id: 'ada' })
  t.notMatch(await tableText(backend, 'memory_keys'), ada.key.slice(3))
  const { items } = (await owner.get('/v1/account/events')).body
  const ofUser = { subject: maskKey(ada.key), external_id: 'ada', actor: maskKey(key) }
  t.match(items.slice(0, 2), [
    { action: 'key.revealed', ...ofUser },
    { action: 'key.minted', ...ofUser },
  ])
  t.notOk('external_id' in items.at(-1), 'the owner key is no user’s')
})

t.test('201: a lost key is replaced, and the vault stays', async t => {
  const { key: adminKey, memoryKey } = await buildAdmin(backend)
  const owner = createTestClient(base, memoryKey)
  const { body: webhook } = await owner.post('/v1/account/webhooks', {
    url: 'https://example.com/hook',
    events: ['key.revoked'],
  })
  const { body: lost } = await owner.post('/v1/keys', { external_id: 'ada', name: 'Ada' })
  await createTestClient(base, lost.key).post('/v1/memory/ingest?wait=true', told)
  const reminted = await owner.post(`/v1/keys/${lost.id}/remint`)
  t.match(reminted, {
    status: 201,
    body: { name: 'Ada', external_id: 'ada', revoked_keys: 1, key: /^mk_/ },
  })
  t.equal((await createTestClient(base, lost.key).get('/v1/memory/stats')).status, 401)
  t.equal(await memoriesOf(reminted.body.key), 1)
  t.equal((await owner.post('/v1/keys', { external_id: 'ada' })).body.key, reminted.body.key)
  t.match((await owner.get('/v1/account/events?limit=3')).body.items.slice(1), [
    { action: 'key.reminted', subject: maskKey(reminted.body.key), external_id: 'ada' },
    { action: 'key.revoked', subject: maskKey(lost.key), external_id: 'ada' },
  ])
  t.match(await webhookDeliveriesOf(backend, webhook.id), [
    { event: 'key.revoked', data: { key_id: lost.id, external_id: 'ada' } },
  ])

  const { body: plain } = await owner.post('/v1/keys', { name: 'without an id' })
  const byAdmin = await createTestClient(base, adminKey).post(`/v1/keys/${plain.id}/remint`)
  t.match(byAdmin, { status: 201, body: { name: 'without an id' } })
  t.notOk('external_id' in byAdmin.body)
})

t.test('a replaced key takes those of a rotation along, and keeps its limits', async t => {
  const owner = await newClient()
  const { body: first } = await owner.post('/v1/keys', { external_id: 'ada' })
  const grace = { grace_seconds: 3_600 }
  const { body: second } = await createTestClient(base, first.key).post('/v1/keys/rotate', grace)
  const { body: third } = await owner.post(`/v1/keys/${second.id}/remint`)
  t.equal(third.revoked_keys, 2)
  for (const { key } of [first, second]) {
    t.equal((await createTestClient(base, key).get('/v1/memory/stats')).status, 401)
  }
  const hashOf = (key: string): Buffer => hashKey(backend.config.keyPepper, key)
  const { limitedAs } = (await backend.findKey(hashOf(third.key)))!
  t.same(limitedAs, hashOf(first.key))
})

t.test('the same Idempotency-Key answers with the same new key', async t => {
  const owner = await newClient()
  const { body: lost } = await owner.post('/v1/keys', { external_id: 'ada' })
  const path = `/v1/keys/${lost.id}/remint`
  const header = { 'idempotency-key': 'again' }
  const { body: one } = await owner.post(path, {}, header)
  t.same((await owner.post(path, {}, header)).body, one)
  t.equal((await createTestClient(base, one.key).get('/v1/memory/stats')).status, 200)
})

t.test('409: a user whose key has ended, until it is replaced', async t => {
  const owner = await newClient()
  const { body: ada } = await owner.post('/v1/keys', { external_id: 'ada' })
  await createTestClient(base, ada.key).post('/v1/memory/ingest?wait=true', told)
  await owner.send('DELETE', `/v1/keys/${ada.id}`)
  const refused = await owner.post('/v1/keys', { external_id: 'ada' })
  t.match(refused, { status: 409, body: { hint: new RegExp(`${ada.id}/remint`) } })
  const { body: again } = await owner.post(`/v1/keys/${ada.id}/remint`)
  t.equal(again.revoked_keys, 0)
  t.equal(await memoriesOf(again.key), 1)
  t.equal((await owner.post('/v1/keys', { external_id: 'ada' })).body.key, again.key)
})

t.test('an erased user is forgotten with the id, which is free again', async t => {
  const owner = await newClient()
  const { body: ada } = await owner.post('/v1/keys', { external_id: 'ada lovelace' })
  await createTestClient(base, ada.key).post('/v1/memory/ingest?wait=true', told)
  t.equal((await owner.send('DELETE', `/v1/keys/${ada.id}?erase=true`)).status, 200)
  t.match(await owner.post(`/v1/keys/${ada.id}/remint`), { status: 409, body: { error: /erased/ } })
  const again = await owner.post('/v1/keys', { external_id: 'ada lovelace' })
  t.equal(again.status, 201)
  t.equal(await memoriesOf(again.body.key), 0)
  await owner.send('DELETE', `/v1/keys/${again.body.id}?erase=true`)
  const events = await owner.get('/v1/account/events?limit=500')
  const exported = await owner.get('/v1/account/export')
  t.notMatch(JSON.stringify([events.body, exported.body]), 'lovelace')
  t.notMatch(await tableText(backend, 'vaults'), 'lovelace')
})

t.test('409: an owner key is rotated, not replaced', async t => {
  const owner = await newClient()
  const [own] = (await owner.get('/v1/keys')).body.items
  t.match(await owner.post(`/v1/keys/${own.id}/remint`), { status: 409, body: { hint: /rotate/ } })
})

t.test('the export of the account names the users of its vaults', async t => {
  const owner = await newClient()
  await owner.post('/v1/keys', { external_id: 'ada' })
  const lines = (await owner.get('/v1/account/export')).body as { type: string }[]
  t.match(
    lines.filter(({ type }) => type === 'vault'),
    [{ external_id: null }, { external_id: 'ada' }],
  )
})

t.test('200: a user is erased by the id of the product, with counts and a receipt', async t => {
  const owner = await newClient()
  const id = 'user/17 Ada'
  const { body: made } = await owner.post('/v1/keys', { external_id: id })
  const ada = createTestClient(base, made.key)
  await ada.post('/v1/memory/ingest?wait=true', told)
  await ada.post('/v1/memory/ingest?wait=true', told, { 'x-session-id': 'chat-1' })
  const path = `/v1/account/users/${encodeURIComponent(id)}`
  t.equal((await ada.send('DELETE', path)).status, 403)
  const { status, body } = await owner.send('DELETE', path)
  t.match([status, body], [200, { deleted: true, id, erased: { memories: 2, keys: 1 } }])
  t.equal((await ada.get('/v1/memory/stats')).status, 401)
  t.equal((await owner.send('DELETE', path)).status, 404)
  const { keys } = (await owner.get('/v1/receipts/key')).body
  const { operation_id: receipt } = body
  const proof = createHash('sha256').update(`${receipt}:${id.toLowerCase()}`).digest('hex')
  t.match(verifyReceipt(body.receipt, keys), {
    id: receipt,
    user_proof: proof,
    erased: body.erased,
  })
  const { body: again } = await owner.post('/v1/keys', { external_id: id })
  t.equal(await memoriesOf(again.key), 0, 'the id is free, and its vault empty')
  t.match((await owner.get('/v1/account')).body, {
    users: 1,
    users_new_7_days: 1,
    calls_by_day: [],
  })
})
