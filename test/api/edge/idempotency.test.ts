import t from 'tap'
import { OperationWaiter } from '#shared/operations/operation-waiter.ts'
import { openPostgres } from '#shared/storage/postgres/connect.ts'
import { Refusal } from '#shared/core/errors.ts'
import {
  buildKey,
  createTestClient,
  startTestApi,
  startJobWorkers,
  type TestAnswer,
} from '#test/support/start/api.ts'
import { insertMemories, resolveCaller } from '#test/support/start/insert-memories.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { setBalance, setPaymentMethod } from '#test/support/checks/alter.ts'
import { loseAnswers, releaseIdempotencyKeys } from '#test/support/checks/alter-jobs.ts'
import { countRows, tableText } from '#test/support/checks/observe.ts'

const backend = await createTestBackend(t)
const key = await buildKey(backend)
const api = await startTestApi(t, backend, key)

/** The database is away for a moment, once, when a request that has promised its work looks after it. */
let isAway = false
const postgres = openPostgres(backend.config.databaseUrl, { max: 2, onError: () => {} })
const operations = new OperationWaiter({
  ...postgres,
  async query(text, values, name) {
    if (name !== 'operations.state' || !isAway) return postgres.query(text, values, name)
    isAway = false
    throw new Refusal('unavailable', 'The database is out of reach')
  },
})
t.teardown(async () => {
  await operations.close()
  await postgres.close()
})
const shaken = await startTestApi(t, { ...backend, operationWaiter: operations }, key)
const exchange = { messages: [{ role: 'user', content: 'water the tomatoes' }] }

const ingest = (idempotency: string, body: object = exchange, client = api) =>
  client.post('/v1/memory/ingest', body, { 'idempotency-key': idempotency })

const count = (): Promise<number> => countRows(backend, 'operations')

t.test('202 again: the same key and body answer the first answer and do nothing', async t => {
  const first = await ingest('one')
  const again = await ingest('one')
  t.equal(again.status, 202)
  t.same(again.body, first.body)
  t.same(
    [first, again].map(({ headers }) => headers.get('idempotent-replayed')),
    [null, 'true'],
  )
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
  const stranger = createTestClient(api.base, await buildKey(backend))
  t.equal((await ingest('one', exchange, stranger)).status, 202)
  t.equal(await count(), before + 1)
  t.equal((await api.post('/v1/keys', {}, { 'idempotency-key': 'one' })).status, 201)
})

t.test('201 again: a raw key is shown again to who asks again, and kept sealed', async t => {
  const ask = () => api.post('/v1/keys', { name: 'x' }, { 'idempotency-key': 'mint' })
  const first = await ask()
  t.equal((await ask()).body.key, first.body.key)
  t.notMatch(await tableText(backend, 'idempotency'), first.body.key)
})

t.test('a refused request gives its key back', async t => {
  t.equal((await ingest('later', { messages: [{ role: 'system', content: 'x' }] })).status, 400)
  t.equal((await ingest('later')).status, 202)
})

t.test('a request that died with its process is taken over under its operation', async t => {
  const { body } = await ingest('crash')
  await loseAnswers(backend, 'crash', 60)
  t.match(await ingest('crash'), { status: 409, body: { error: /still running/ } })
  await releaseIdempotencyKeys(backend)
  const before = await count()
  const again = await ingest('crash')
  t.equal(again.body.operation_id, body.operation_id)
  t.equal(await count(), before, 'nothing is promised twice')
})

t.test('50 keys raced 20 times each: every one is executed once', async t => {
  const before = await count()
  const answers: TestAnswer[] = []
  // Ten keys at a time: on a busy machine a thousand connections at once do not all send within ten seconds.
  for (let first = 0; first < 50; first += 10) {
    const racing = Array.from({ length: 200 }, (_, n) => ingest(`race-${first + (n % 10)}`))
    answers.push(...(await Promise.all(racing)))
  }
  t.equal(await count(), before + 50)
  t.ok(
    answers.every(({ status }) => status === 202 || status === 409),
    'the others get the first answer again, or hear that it is still running',
  )
  for (let n = 0; n < 50; n++) {
    const own = answers.filter((_, index) => 10 * Math.floor(index / 200) + (index % 10) === n)
    t.equal(own.length, 20)
    const accepted = own.filter(({ status }) => status === 202)
    t.equal(new Set(accepted.map(({ body }) => body.operation_id)).size, 1)
  }
})

t.test('503, then the first answer: what was promised is not promised again', async t => {
  const paying = createTestClient(shaken.base, await buildKey(backend))
  const ask = () =>
    paying.post('/v1/memory/ingest?wait=true', exchange, { 'idempotency-key': 'shaken' })
  const before = await count()
  isAway = true
  t.equal((await ask()).status, 503)
  t.equal(await count(), before + 1, 'the work was promised by then')

  await startJobWorkers(backend, 'ingest')
  const again = await ask()
  t.equal(again.status, 200)
  t.equal(await count(), before + 1)
  t.same((await ask()).body, again.body)
  t.equal((await paying.get('/v1/memory/stats')).body.memories, 1)
  t.equal((await paying.get('/v1/account/usage')).body.total_requests, 1)
})

t.test('503, then the outcome: a clearing sent again takes nothing that came since', async t => {
  const client = createTestClient(shaken.base, await buildKey(backend))
  await startJobWorkers(backend, 'clear')
  await client.post('/v1/memory/ingest?wait=true', exchange)
  const clear = () =>
    client.send('DELETE', '/v1/memory', { headers: { 'idempotency-key': 'empty it' } })
  isAway = true
  t.equal((await clear()).status, 503)

  const later = { messages: [{ role: 'user', content: 'said after the clearing' }] }
  t.equal((await client.post('/v1/memory/ingest?wait=true', later)).status, 200)
  t.match(await clear(), { status: 200, body: { deleted: 1 } })
  const { items } = (await client.get('/v1/memory/list')).body
  t.match(items, [{ text: 'said after the clearing' }])
  t.equal(items.length, 1)
})

t.test('after a 503 the key is for the same request only', async t => {
  isAway = true
  const wait = (body: object) =>
    shaken.post('/v1/memory/ingest?wait=true', body, { 'idempotency-key': 'mine' })
  t.equal((await wait(exchange)).status, 503)
  const other = { messages: [{ role: 'user', content: 'other' }] }
  t.match(await wait(other), { status: 400, body: { error: /another request/ } })
  t.equal((await wait(exchange)).status, 200)
})

/** A vault whose account has so many tokens left. */
const clientWith = async (balance: number | null) => {
  const key = await buildKey(backend)
  const { account } = await resolveCaller(backend, key)
  await setBalance(backend, { account }, balance)
  return { ...createTestClient(shaken.base, key), account }
}

t.test('202 again, and not 402: the balance has run out meanwhile', async t => {
  const client = await clientWith(2)
  const first = await ingest('last tokens', exchange, client)
  t.equal(first.status, 202)
  t.equal((await ingest('more', exchange, client)).status, 402)
  const again = await ingest('last tokens', exchange, client)
  t.equal(again.status, 202)
  t.same(again.body, first.body)
})

t.test('a request that failed behind its promise is no matter of the balance any more', async t => {
  const client = await clientWith(2)
  const ask = () =>
    client.post('/v1/memory/ingest?wait=true', exchange, { 'idempotency-key': 'paid' })
  isAway = true
  t.equal((await ask()).status, 503)
  t.equal((await ask()).status, 200)
})

t.test('200 again, and not 402: the card of an upload is gone', async t => {
  await startJobWorkers(backend, 'upload')
  const client = await clientWith(null)
  const upload = (idempotency: string) =>
    client.send('POST', '/v1/memory/upload', {
      body: JSON.stringify({ content: 'the lease ends in May' }),
      headers: { 'content-type': 'application/x-ndjson', 'idempotency-key': idempotency },
    })
  const first = await upload('file')
  t.equal(first.status, 200)
  await setBalance(backend, client, 0)
  await setPaymentMethod(backend, client.account, null)
  const again = await upload('file')
  t.equal(again.status, 200)
  t.same(again.body, first.body)
  t.match(await upload('another'), { status: 402, body: { error: /card/ } })
  t.match((await upload('another')).status, 402, 'a refused one stays refused')
})

t.test('every write is replayed whatever the balance', async t => {
  const client = await clientWith(null)
  await client.post('/v1/memory/ingest?wait=true', exchange)
  const [{ memory_id }] = (await client.get('/v1/memory/list')).body.items
  const asks: [string, object][] = [
    ['edit', { memory_id, text: 'water the tomatoes twice' }],
    ['consolidate/checkout', { tier: 1 }],
  ]
  const ask = ([name, body]: [string, object]) =>
    client.post(`/v1/memory/${name}`, body, { 'idempotency-key': `ask ${name}` })
  const first = await Promise.all(asks.map(ask))
  await setBalance(backend, client, 0)
  for (const [index, asked] of asks.entries()) {
    const again = await ask(asked)
    t.equal(again.status, 200, asked[0])
    t.same(again.body, first[index]!.body)
  }
  t.equal((await client.post('/v1/memory/edit', asks[0]![1])).status, 402)
})

t.test('what changes nothing keeps nothing: a read, and a dry run', async t => {
  const key = await buildKey(backend)
  const client = createTestClient(api.base, key)
  await insertMemories(backend, key, [{ text: 'water the tomatoes' }])
  const [{ memory_id }] = (await client.get('/v1/memory/list')).body.items
  const copy = { destination_key: await buildKey(backend), dry_run: true }
  const asks: [string, object][] = [
    ['search', { query: 'tomatoes', limit: 1 }],
    ['prepare', { messages: exchange.messages }],
    ['date-search', { from: '2020-01-01' }],
    ['warmup', {}],
    ['inspect', { memory_id }],
    ['graft', { ...copy, queries: ['tomatoes'] }],
    ['transfer', copy],
  ]
  const before = await countRows(backend, 'idempotency')
  for (const [name, body] of asks) {
    for (let times = 0; times < 2; times++) {
      const answer = await client.post(`/v1/memory/${name}`, body, { 'idempotency-key': name })
      t.equal(answer.status, 200, name)
      t.equal(answer.headers.get('idempotent-replayed'), null, name)
    }
  }
  t.equal(await countRows(backend, 'idempotency'), before)
})
