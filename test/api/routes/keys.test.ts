import t from 'tap'
import { createTestClient } from '#test/support/start/api.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { tableText } from '#test/support/checks/observe.ts'
import { isSinceStart } from '#test/support/samples/recent.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base, newClient } = await startService(t)
const api = await newClient()

t.test('201: a new key with an empty vault of its own in the same account', async t => {
  await api.post('/v1/memory/ingest?wait=true', { messages: [{ role: 'user', content: 'mine' }] })
  const { status, body } = await api.post('/v1/keys', { name: 'Phone' })
  t.equal(status, 201)
  t.match(body, { key: /^mk_[0-9A-Za-z]{32}$/, name: 'Phone' })
  t.ok(isSinceStart(body.created_at))

  const phone = createTestClient(base, body.key)
  t.equal((await phone.get('/v1/memory/stats')).body.memories, 0)
  t.equal((await api.get(`/v1/memory/${body.key}/stats`)).status, 200, 'the account is the same')
})

t.test('201: without a name, and without a body', async t => {
  t.match((await api.post('/v1/keys', {})).body, { name: 'New Key' })
  t.match((await api.send('POST', '/v1/keys')).body, { name: 'New Key' })
})

t.test('201: a key that expires stops working then', async t => {
  const statuses: number[] = []
  // On a busy machine a short life is over before the first request.
  for (const lifeMs of [1_500, 10_000, 100_000]) {
    const expires_at = new Date(Date.now() + lifeMs).toISOString()
    const { status, body } = await api.post('/v1/keys', { expires_at })
    if (status === 400) continue
    t.equal(body.expires_at, expires_at)
    const guest = createTestClient(base, body.key)
    const stats = async () => (await guest.get('/v1/memory/stats')).status
    statuses.push(await stats())
    await waitUntil('the key has expired', async () => (await stats()) === 401)
    if (statuses.at(-1) === 200) break
  }
  t.equal(statuses.at(-1), 200, 'until then it works')
  t.equal((await api.post('/v1/keys', { expires_at: '2020-01-01T00:00:00Z' })).status, 400)
})

t.test('the raw key is stored nowhere', async t => {
  const { body } = await api.post('/v1/keys')
  t.notMatch(await tableText(backend, 'memory_keys'), body.key.slice(3))
})
