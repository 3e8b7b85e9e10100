import t, { type Test } from 'tap'
import { createApp } from '#api/app.ts'
import type { Quotas } from '#api/edge/rate-limit.ts'
import { createHttpServer } from '#api/edge/server.ts'
import type { Backend } from '#shared/backend.ts'
import {
  buildKey,
  createTestClient,
  type TestAnswer,
  type TestClient,
} from '#test/support/start/api.ts'
import { createTestBackend, createTestConfig } from '#test/support/start/backend.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { hideTable } from '#test/support/checks/alter.ts'
import { setPending } from '#test/support/checks/alter-jobs.ts'
import { countRows, tableText } from '#test/support/checks/observe.ts'
import { listen } from '#test/support/start/listen.ts'

const config = await createTestConfig(t, {
  RATE_LIMITS: 'on',
  ADMIN_SECRET: 'break-the-glass-please',
  ADMIN_EMAIL: 'root@example.com',
})
const lines: { event: string; [field: string]: unknown }[] = []
const heard = async (): Promise<Backend> => {
  const backend = await createTestBackend(t, { config })
  const warn = (fields: object, event: string) => void lines.push({ ...fields, event })
  return { ...backend, log: Object.assign(Object.create(backend.log), { warn }) }
}
const [backend, other] = [await heard(), await heard()]

/** All windows are told by this clock, those in the database too. It stands still: a busy machine is slow. */
let ahead = 0
const { now } = Date
const begunAt = now()
Date.now = () => begunAt + ahead
t.teardown(() => (Date.now = now))
/** Nobody has made a request in the last minute. */
t.beforeEach(() => {
  ahead += 61_000
  slowest = 0
})

/** An application of its own, as another process has it: it knows nothing of the others. */
const apiOf = (t: Test, of: Backend, quotas?: Quotas): Promise<string> =>
  listen(t, createHttpServer(createApp(of, quotas)))

/** The slowest request of a test, in milliseconds. */
let slowest = 0

const stats = async (client: TestClient): Promise<TestAnswer> => {
  const begun = performance.now()
  const answer = await client.get('/v1/memory/stats')
  slowest = Math.max(slowest, performance.now() - begun)
  return answer
}
/** What two processes let pass of a limit: one that waits for the store for a second counts alone. */
const mostOf = (points: number): number => (slowest < 900 ? points * 1.02 : points * 2)
/** Twelve requests at a time. */
const atOnce = async (count: number, work: (index: number) => Promise<TestAnswer>) => {
  const lane = (_: unknown, first: number) => times(count / 12, n => work(12 * n + first))
  return (await Promise.all(Array.from({ length: 12 }, lane))).flat()
}
const times = async <T>(count: number, work: (index: number) => Promise<T>): Promise<T[]> => {
  const results: T[] = []
  for (let index = 0; index < count; index++) results.push(await work(index))
  return results
}
const served = (answers: TestAnswer[]): number =>
  answers.filter(({ status }) => status === 200).length

const limitOf = ({ headers }: TestAnswer) => ({
  limit: headers.get('ratelimit-limit'),
  remaining: headers.get('ratelimit-remaining'),
  reset: Number(headers.get('ratelimit-reset')),
  retryAfter: headers.get('retry-after'),
})

t.test('429: a key has 100 requests in 10 seconds, and sees how many are left', async t => {
  const key = await buildKey(backend)
  const client = createTestClient(await apiOf(t, backend), key)
  const answers = await times(100, () => stats(client))
  t.equal(served(answers), 100)
  t.same(
    answers.map(answer => limitOf(answer).remaining),
    Array.from({ length: 100 }, (_, index) => String(99 - index)),
  )
  t.match(limitOf(answers[0]!), { limit: '100', reset: 10, retryAfter: null })

  const refused = await stats(client)
  t.match(refused, { status: 429, body: { error: 'More than 100 requests in 10 s', hint: /\d s/ } })
  const { limit, remaining, retryAfter, reset } = limitOf(refused)
  t.same({ limit, remaining }, { limit: '100', remaining: '0' })
  t.match(retryAfter, /^([1-9]|10)$/, 'a whole number of seconds')
  t.equal(String(reset), retryAfter)

  const neighbour = createTestClient(client.base, await buildKey(backend))
  t.equal((await stats(neighbour)).status, 200, 'other keys go on')
  ahead += Number(retryAfter) * 1000
  t.equal((await stats(client)).status, 200, 'after Retry-After it goes on')
})

t.test('429: a key has so many requests in a minute, where the ten seconds allow them', async t => {
  const both: Quotas = {
    key: [
      { points: 20, seconds: 10 },
      { points: 30, seconds: 60 },
    ],
    address: [{ points: 60, seconds: 60 }],
  }
  const client = createTestClient(await apiOf(t, backend, both), await buildKey(backend))
  t.equal(served(await times(20, () => stats(client))), 20)
  t.match(await stats(client), { status: 429, body: { error: 'More than 20 requests in 10 s' } })
  ahead += 10_000
  t.equal(served(await times(10, () => stats(client))), 10)
  t.match(await stats(client), { status: 429, body: { error: 'More than 30 requests in 60 s' } })
})

t.test('429: two processes together hold a key to its limit', async t => {
  const key = await buildKey(backend)
  const clients = [
    createTestClient(await apiOf(t, backend), key),
    createTestClient(await apiOf(t, other), key),
  ]
  const inTurn = served(await times(160, index => stats(clients[index % 2]!)))
  t.ok(inTurn >= 95 && inTurn <= mostOf(100), `in turn: ${inTurn}`)

  ahead += 61_000
  const begun = await atOnce(240, index => stats(clients[index % 2]!))
  t.ok(served(begun) >= 95 && served(begun) <= mostOf(100), `at once: ${served(begun)}`)

  ahead += 61_000
  const bySecond = served(await times(10, () => stats(clients[1]!)))
  const byFirst = served(await times(110, () => stats(clients[0]!)))
  const lopsided = bySecond + byFirst
  t.ok(lopsided >= 95 && lopsided <= mostOf(100), `lopsided: ${lopsided}`)
})

t.test('200: a key that asks little costs the database nothing', async t => {
  const key = await buildKey(backend)
  const client = createTestClient(await apiOf(t, backend), key)
  const rows = () => countRows(backend, 'rate_points')
  const before = await rows()
  await times(2, () => stats(client))
  t.equal(await rows(), before)
})

t.test('429: an address has 60 requests a minute without a valid key', async t => {
  const key = await buildKey(backend)
  const base = await apiOf(t, backend)
  const nobody = createTestClient(base)
  const wrong = createTestClient(base, `mk_${'x'.repeat(32)}`)
  const kinds = [
    () => nobody.get('/'),
    () => stats(nobody),
    () => stats(wrong),
    () => nobody.get('/no/such/path'),
    () => nobody.send('PATCH', '/v1/memory/search'),
    () => stats(createTestClient(base, `${key}:wrong`)),
  ]
  const answers = await times(60, index => kinds[index % kinds.length]!())
  t.same(
    new Set(answers.map(({ status }) => status)),
    new Set([200, 401, 404, 405]),
    'all of them count',
  )
  t.match(limitOf(answers[0]!), { limit: '60', remaining: '59', reset: 60 })
  for (const kind of kinds) {
    t.match(await kind(), {
      status: 429,
      body: { error: 'More than 60 requests in 60 s', hint: /valid Memory Key/ },
    })
  }
  t.match(limitOf(await stats(wrong)).retryAfter, /^[1-5]?\d$|^60$/)
  t.equal(
    (await stats(createTestClient(base, key))).status,
    200,
    'a valid key is served all the same',
  )
  t.equal(
    (
      await createTestClient(base).get('/v1/account/provider-keys', {
        'x-admin-key': 'break-the-glass-please',
      })
    ).status,
    200,
    'and so is an admin',
  )
  const google = { 'x-goog-api-key': key }
  const call = await nobody.post('/v1/models/nothing-of-ours:generateContent', {}, google)
  t.equal(call.status, 400, 'and so is a client of Google, whose key stands elsewhere')
  ahead += 60_000
  t.equal((await stats(wrong)).status, 401)
})

t.test('429: an address is held to its limit by two processes together', async t => {
  const wrong = [await apiOf(t, backend), await apiOf(t, other)].map(base =>
    createTestClient(base, `mk_${'y'.repeat(32)}`),
  )
  const answers = await times(90, index => stats(wrong[index % 2]!))
  const passed = answers.filter(({ status }) => status === 401).length
  t.ok(passed >= 57 && passed <= mostOf(60), String(passed))
})

t.test('200: requests with a valid key do not count for their address', async t => {
  const base = await apiOf(t, backend)
  const client = createTestClient(base, await buildKey(backend))
  await times(70, () => stats(client))
  t.equal((await createTestClient(base).get('/')).status, 200)
})

t.test('429: a process serves so many requests of one key at the same time', async t => {
  const quota = [{ points: 1_000, seconds: 60 }]
  const base = await apiOf(t, backend, { key: quota, address: quota, maxConcurrent: 3 })
  const key = await buildKey(backend)
  const [client, neighbour] = [
    createTestClient(base, key),
    createTestClient(base, await buildKey(backend)),
  ]
  // Nobody works here: these wait for a worker until they are given up.
  const waiting = new AbortController()
  const { signal } = waiting
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ messages: [{ role: 'user', content: 'said' }] })
  const url = `${base}/v1/memory/ingest?wait=true`
  await waitUntil('three are under way', async () => {
    if ((await stats(client)).status === 429) return true
    // One at a time: who asks how far it is takes a place, too.
    fetch(url, { method: 'POST', headers, body, signal }).catch(() => undefined)
    return false
  })
  t.match(await stats(client), {
    status: 429,
    body: { error: 'More than 3 requests at the same time', hint: /Wait/ },
  })
  t.equal((await stats(client)).headers.get('retry-after'), '1')
  t.equal((await stats(neighbour)).status, 200, 'others are served')
  waiting.abort()
  await waitUntil('places are free again', async () => (await stats(client)).status === 200)
  t.equal(served(await times(9, () => stats(client))), 9)
})

t.test('429: of one vault not more waits than the queue bears', async t => {
  const client = createTestClient(await apiOf(t, backend), await buildKey(backend))
  const line = { messages: [{ role: 'user', content: 'said' }] }
  const { body } = await client.post('/v1/memory/ingest', line)
  await setPending(backend, body.operation_id, 50_000)
  for (const [path, sent] of [
    ['/v1/memory/ingest', line],
    ['/v1/memory/upload', '{"content":"a"}'],
    ['/v1/memory/import', ''],
    ['/v1/memory/reembed', { embeddings: 'local' }],
  ] as const) {
    const answer = await client.post(path, sent)
    t.match(answer, { status: 429, body: { error: /50000 pieces of work/ } }, path)
    t.equal(answer.headers.get('retry-after'), '10')
  }
  t.equal((await stats(client)).status, 200, 'reading goes on')
  const { status } = await client.send('DELETE', `/v1/operations/${body.operation_id}`)
  t.equal(status, 200, 'and so does cancelling')
  t.equal((await client.post('/v1/memory/ingest', line)).status, 202)
})

t.test('200: health and the pages are never limited, whatever their address has done', async t => {
  const base = await apiOf(t, backend)
  const nobody = createTestClient(base)
  await times(60, () => stats(nobody))
  t.equal((await stats(nobody)).status, 429)
  for (const path of [
    '/health',
    '/health/live',
    '/health/ready',
    '/console',
    '/console/',
    '/console/style.css',
    '/docs',
    '/openapi.json',
    '/guides',
    '/guides/start',
    '/llms.txt',
  ]) {
    const answer = await fetch(base + path)
    await answer.arrayBuffer()
    t.equal(answer.status, 200, path)
    t.equal(answer.headers.get('ratelimit-limit'), null, path)
  }
  t.equal((await nobody.get('/')).status, 429)
  t.equal((await nobody.post('/health/live', {})).status, 429, 'reading them, that is')
  const answers = await times(130, () => nobody.get('/health'))
  t.equal(served(answers), 130)
})

t.test('429: admin credentials have the limit of a key', async t => {
  const nobody = createTestClient(await apiOf(t, backend))
  const asAdmin = () =>
    nobody.get('/v1/account/provider-keys', { 'x-admin-key': 'break-the-glass-please' })
  t.equal(served(await times(100, asAdmin)), 100)
  t.equal((await asAdmin()).status, 429)
})

t.test('429: a key that has used up its limit is refused without looking it up', async t => {
  const key = await buildKey(backend)
  const client = createTestClient(await apiOf(t, backend), key)
  await times(100, () => stats(client))
  t.equal((await stats(client)).status, 429)
  const lookedUp: string[] = []
  const watching: Backend = {
    ...backend,
    findKey: hash => (lookedUp.push('key'), backend.findKey(hash)),
  }
  const watched = createTestClient(await apiOf(t, watching), await buildKey(backend))
  await times(100, () => stats(watched))
  t.equal(lookedUp.length, 100)
  t.equal((await stats(watched)).status, 429)
  t.equal(lookedUp.length, 100)
  t.equal(
    (await stats(createTestClient(watched.base, `${key}:read`))).status,
    200,
    'known elsewhere only',
  )
})

t.test('a suffix gives a key no second limit', async t => {
  const key = await buildKey(backend)
  const base = await apiOf(t, backend)
  await times(100, index => stats(createTestClient(base, index % 2 ? key : `${key}:read`)))
  t.equal((await stats(createTestClient(base, `${key}:read`))).status, 429)
})

t.test('what the operator reads: counts, no keys', async t => {
  const key = await buildKey(backend)
  const client = createTestClient(await apiOf(t, backend), key)
  lines.length = 0
  await times(212, () => stats(client))
  t.match(lines, [
    { event: 'key.limited', refused: 1, limit: 100, ofSeconds: 10, account: /-/, request: /-/ },
    { event: 'key.limited', refused: 10 },
    { event: 'key.limited', refused: 100 },
  ])
  t.equal(lines.length, 3)
  const written = JSON.stringify(lines) + (await tableText(backend, 'rate_points'))
  t.notMatch(written, key)
  t.notMatch(written, '127.0.0.1', 'nor does the database learn an address')
})

t.test('503 not 429: while the database is away no request is counted', async t => {
  const away: Backend = { ...backend, findKey: () => backend.findKey(Buffer.from('x')).then(gone) }
  const { Refusal } = await import('#shared/core/errors.ts')
  function gone(): never {
    throw new Refusal('unavailable', 'The database is out of reach')
  }
  const client = createTestClient(await apiOf(t, away), `mk_${'z'.repeat(32)}`)
  const answers = await times(70, () => stats(client))
  t.same(new Set(answers.map(({ status }) => status)), new Set([503]))
})

t.test('a process that cannot count with the others counts alone', async t => {
  const key = await buildKey(backend)
  const client = createTestClient(await apiOf(t, backend), key)
  const hidden = await hideTable(backend, 'rate_points')
  lines.length = 0
  try {
    t.equal(served(await times(110, () => stats(client))), 100)
    t.match(lines[0], { event: 'limits.uncounted', limit: 'key' })
  } finally {
    await hidden.restore()
  }
})

t.test('200: a count that hangs holds a request up for a second at most', async t => {
  const client = createTestClient(await apiOf(t, backend), await buildKey(backend))
  await backend.postgres.transaction(async tx => {
    await tx.query('lock table rate_points in access exclusive mode')
    t.equal(served(await times(4, () => stats(client))), 4)
  })
  // A statement has a minute here.
  t.ok(slowest < 45_000, `${slowest} ms`)
})

t.test('200: RATE_LIMITS=off', async t => {
  const off = { ...backend, config: { ...backend.config, rateLimits: false } }
  const client = createTestClient(await apiOf(t, off), await buildKey(backend))
  const answers = await times(120, () => stats(client))
  t.equal(served(answers), 120)
  t.equal(answers[0]!.headers.get('ratelimit-limit'), null)
})
