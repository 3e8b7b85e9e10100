import t from 'tap'
import { buildKey, clientOf, testApi } from '#test/support/api.ts'
import { testBackend } from '#test/support/backend.ts'

const backend = await testBackend(t)
const key = await buildKey(backend)
const api = await testApi(t, backend, key)
const exchange = { messages: [{ role: 'user', content: 'water the tomatoes' }] }

const ingest = (idempotency: string, body: object = exchange, client = api) =>
  client.post('/v1/memory/ingest', body, { 'idempotency-key': idempotency })

const count = async (): Promise<number> => {
  const { rows } = await backend.postgres.query<{ n: number }>(
    'select count(*)::int n from operations',
  )
  return rows[0]!.n
}

t.test('202 again: the same key and body answer the first answer and do nothing', async t => {
  const first = await ingest('one')
  const again = await ingest('one')
  t.equal(again.status, 202)
  t.same(again.body, first.body)
  t.equal(await count(), 1)
})

t.test('400: the same key with another body, query or session', async t => {
  const other = await ingest('one', { messages: [{ role: 'user', content: 'other' }] })
  t.match(other, { status: 400, body: { error: /Idempotency-Key/, hint: /new key/ } })
  const session = await api.post('/v1/memory/ingest', exchange, {
    'idempotency-key': 'one',
    'x-session-id': 'elsewhere',
  })
  t.equal(session.status, 400)
})

t.test('keys of one client mean nothing to another, nor on another route', async t => {
  const before = await count()
  const stranger = clientOf(api.base, await buildKey(backend))
  t.equal((await ingest('one', exchange, stranger)).status, 202)
  t.equal(await count(), before + 1)
  t.equal((await api.post('/v1/keys', {}, { 'idempotency-key': 'one' })).status, 201)
})

t.test('201 again: a raw key is shown again to who asks again, and kept sealed', async t => {
  const ask = () => api.post('/v1/keys', { name: 'x' }, { 'idempotency-key': 'mint' })
  const first = await ask()
  t.equal((await ask()).body.key, first.body.key)
  const { rows } = await backend.postgres.query('select answer from idempotency')
  t.notMatch(JSON.stringify(rows), first.body.key)
})

t.test('a refused request gives its key back', async t => {
  t.equal((await ingest('later', { messages: [{ role: 'system', content: 'x' }] })).status, 400)
  t.equal((await ingest('later')).status, 202)
})

t.test('a request that died with its process is taken over under its operation', async t => {
  const { body } = await ingest('crash')
  await backend.postgres.query(
    `update idempotency set answer = null, locked_until = now() + interval '1 minute'
     where idempotency = 'crash'`,
  )
  t.match(await ingest('crash'), { status: 409, body: { error: /still running/ } })
  await backend.postgres.query(
    `update idempotency set locked_until = now() - interval '1 second' where idempotency = 'crash'`,
  )
  const before = await count()
  const again = await ingest('crash')
  t.equal(again.body.operation_id, body.operation_id)
  t.equal(await count(), before, 'nothing is promised twice')
})

t.test('50 keys raced 20 times each: every one is executed once', async t => {
  const before = await count()
  const answers = await Promise.all(
    Array.from({ length: 1_000 }, (_, n) => ingest(`race-${n % 50}`)),
  )
  t.equal(await count(), before + 50)
  t.ok(
    answers.every(({ status }) => status === 202 || status === 409),
    'the others get the first answer again, or hear that it is still running',
  )
  for (let n = 0; n < 50; n++) {
    const accepted = answers.filter((answer, index) => index % 50 === n && answer.status === 202)
    t.equal(new Set(accepted.map(({ body }) => body.operation_id)).size, 1)
  }
})
