import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { jobNames } from '#shared/domain/jobs.ts'
import {
  buildKey,
  createTestClient,
  startTestApi,
  startJobWorkers,
} from '#test/support/start/api.ts'
import {
  createTestBackend,
  createTestConfig,
  defaultRecallTimeout,
} from '#test/support/start/backend.ts'
import { startFaultProxy } from '#test/support/doubles/fault-proxy.ts'
import { waitUntilSettled } from '#test/support/checks/exchange-journal.ts'
import { modelNames } from '#test/support/doubles/model-provider/clients.ts'
import {
  createProxyAccount,
  startProxyFixture,
} from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { startModelProvider } from '#test/support/doubles/model-provider.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { readDocuments, resolveCaller } from '#test/support/start/insert-memories.ts'
import { countRows, vaultRow } from '#test/support/checks/observe.ts'
import { waitUntilIdle } from '#test/support/checks/observe-jobs.ts'

// They mostly wait.
t.jobs = 3
const besides = { buffered: true }

/** Seconds: on a busy machine a short life is over before it is looked at, then a longer one is tried. */
const lives = [4, 20, 150]

const soon = (ms: number): string => new Date(Date.now() + ms).toISOString()
const past = (at: string): Promise<void> => delay(Math.max(0, Date.parse(at) - Date.now()) + 5)

async function say(base: string, key: string, content: string, headers = {}) {
  const response = await fetch(`${base}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}`, ...headers },
    body: JSON.stringify({ model: modelNames.openai, messages: [{ role: 'user', content }] }),
  })
  return { status: response.status, headers: response.headers, text: await response.text() }
}

t.test('200: a call says how long it is remembered; no provider is sent that', besides, async t => {
  const { backend, base, provider, newKey } = await startProxyFixture(t)
  await startJobWorkers(backend)
  let [key, said] = ['', [] as number[]]
  for (const ttl of lives) {
    key = await newKey()
    const begun = Date.now()
    const header = { 'x-memory-ttl': String(ttl) }
    t.equal((await say(base, key, 'My gate code is nine.', header)).status, 200)
    const heard = Date.now()
    t.notOk(provider.requests.at(-1)!.headers.some(([name]) => /^x-memory/i.test(name)))
    t.equal((await say(base, key, 'My gate is green.')).status, 200)
    await waitUntilIdle(backend)
    const ends = (await readDocuments(backend, key)).map(row => row.expires_at?.getTime())
    if (Date.now() >= begun + ttl * 1_000) continue
    said = ends.filter(end => end !== undefined)
    for (const end of said) t.ok(end >= begun + ttl * 1_000 && end <= heard + ttl * 1_000)
    break
  }
  t.equal(said.length, 2, 'what the user said, and what the model answered')
  const client = createTestClient(base, key)
  await past(new Date(said[0]!).toISOString())
  t.equal((await say(base, key, 'What is the code of my gate?')).status, 200)
  t.notMatch(provider.requests.at(-1)!.body.toString(), 'gate code is nine')
  t.match(provider.requests.at(-1)!.body.toString(), 'gate is green')
  await waitUntilSettled(backend)
  t.notMatch(JSON.stringify((await client.get('/v1/memory/list')).body), 'gate code is nine')

  for (const ttl of ['0', '-1', '1.5', '3153600001', 'soon', '1e3', '99999999999']) {
    const refused = await say(base, key, 'x', { 'x-memory-ttl': ttl })
    t.equal(refused.status, 400, ttl)
    t.match(refused.text, 'X-Memory-TTL')
  }
})

t.test('503: while it cannot be removed it is invisible, and calls go on', besides, async t => {
  const provider = await startModelProvider(t)
  const real = await createTestConfig(t, { ...provider.env, ...defaultRecallTimeout })
  const gate = await startFaultProxy(t, real.mongodbUri)
  const backend = await createTestBackend(t, { config: { ...real, mongodbUri: gate.url } })
  const { base } = await startTestApi(t, backend)
  // A sweep might remove what has expired before the store is away.
  await startJobWorkers(backend, ...jobNames.filter(name => name !== 'sweep'))
  const { newKey } = await createProxyAccount(backend, base)
  const key = await newKey()
  const client = createTestClient(base, key)
  const search = () => client.post('/v1/memory/search', { query: 'kettle', limit: 5 })
  let [at, held] = ['', 0]
  for (const life of lives) {
    at = soon(life * 1_000)
    await client.post('/v1/memory/ingest?wait=true', {
      messages: [{ role: 'user', content: 'The kettle is red.' }],
      expires_at: at,
    })
    held = (await search()).body.totalMemories
    if (held === 1) break
  }
  t.equal(held, 1, 'this process holds it in memory')
  await past(at)
  gate.shut()
  const refused = await search()
  t.equal(refused.status, 503)
  t.match(refused.body, { error: String, hint: String })
  t.match(refused.headers.get('retry-after'), /^\d+$/)
  t.equal((await client.get('/v1/memory/stats')).status, 503)
  const called = await say(base, key, 'What colour is the kettle?')
  t.equal(called.status, 200)
  t.equal(called.headers.get('x-memory-status'), 'degraded')
  t.notMatch(provider.requests.at(-1)!.body.toString(), 'is red')
  const accepted = await client.post('/v1/memory/ingest', {
    messages: [{ role: 'user', content: 'The kettle is new.' }],
  })
  t.equal(accepted.status, 202, 'what is to be stored is accepted')
  t.equal((await client.get('/v1/account/usage')).status, 200)
  gate.open()
  await waitUntil('it can be read again', async () => (await search()).status === 200)
  await waitUntilSettled(backend)
  t.notMatch(JSON.stringify((await search()).body), 'kettle is red')
})

t.test('readers and writers of one vault: no answer shows what has expired', besides, async t => {
  const config = await createTestConfig(t)
  const [one, two] = [
    await createTestBackend(t, { config }),
    await createTestBackend(t, { config }),
  ]
  await startJobWorkers(one)
  const key = await buildKey(one)
  const clients = [
    createTestClient((await startTestApi(t, one)).base, key),
    createTestClient((await startTestApi(t, two)).base, key),
  ]
  const ends = new Map<string, number>()
  let shown = 0
  const startedAt = Date.now()
  // Longer on a busy machine: until something was shown.
  const isRunning = () => Date.now() - startedAt < (shown > 0 ? 4_000 : 60_000)
  const late: string[] = []
  const write = async (n: number): Promise<void> => {
    for (let i = 0; isRunning(); i++) {
      const content = `writer ${n} says ${i}`
      const end = i % 4 === 3 ? null : soon(600 + ((i * 411 + n * 159) % 2_700))
      if (end) ends.set(content, Date.parse(end))
      await clients[n % 2]!.post(`/v1/memory/ingest${i % 3 ? '' : '?wait=true'}`, {
        messages: [{ role: 'user', content }],
        ...(end && { expires_at: end }),
      })
      await delay(20)
    }
  }
  const read = async (n: number): Promise<void> => {
    for (let i = 0; isRunning(); i++) {
      const asked = Date.now()
      const client = clients[(n + i) % 2]!
      const { status, body } =
        i % 2
          ? await client.get('/v1/memory/list?limit=200')
          : await client.post('/v1/memory/search', { query: 'writer says', limit: 200 })
      // On a busy machine a deadline of the service may pass; then nothing is shown.
      if (status === 503) continue
      if (status !== 200) throw new Error(`${status}: ${JSON.stringify(body)}`)
      const texts = (body.items ?? body.memories).map(
        (row: { text?: string; content?: string }) => row.text ?? row.content,
      ) as string[]
      shown += texts.length
      late.push(...texts.filter(text => (ends.get(text) ?? Infinity) < asked))
      await delay(10)
    }
  }
  await Promise.all([write(0), write(1), write(2), read(0), read(1), read(2)])
  t.ok(shown > 0, `${shown} rows were shown`)
  t.same(late, [])
  await waitUntilSettled(one)
  await delay(3_600)
  const list = () => clients[0]!.get('/v1/memory/list?limit=200')
  await waitUntil('it can be read', async () => (await list()).status === 200)
  const { items } = (await list()).body
  t.ok(items.every(({ text }: { text: string }) => !ends.has(text)))
  const { body } = await clients[1]!.post('/v1/memory/search', { query: 'writer', limit: 1 })
  const { scope } = await resolveCaller(one, key)
  const row = await vaultRow(one, scope.vault)
  const { tier_counts } = (await clients[0]!.get('/v1/memory/list?limit=1')).body
  t.match(row, { rawUnits: tier_counts.raw, nextExpiry: null }, 'no debt drifts')
  t.equal(await countRows(one, 'announced_expiries'), 0)
  t.equal(body.reflection.unconsolidated.raw.units, tier_counts.raw)
})
