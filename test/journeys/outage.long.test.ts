import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { release } from '#scripts/release.ts'
import { startMongodb } from '#scripts/services/mongodb.ts'
import { startPostgres } from '#scripts/services/postgres.ts'
import type { Backend } from '#shared/backend.ts'
import { createLog } from '#shared/core/log.ts'
import {
  buildKey,
  createTestClient,
  type TestAnswer,
  type TestClient,
} from '#test/support/start/api.ts'
import { createTestBackend, createTestConfig } from '#test/support/start/backend.ts'
import { startFaultProxy } from '#test/support/doubles/fault-proxy.ts'
import {
  checkJournal,
  sendExchanges,
  waitUntilSettled,
} from '#test/support/checks/exchange-journal.ts'
import { startWeb, startWorker } from '#test/support/start/processes.ts'
import { readDocuments } from '#test/support/start/insert-memories.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

t.setTimeout(0)

/** Usual are 0.1 s for a closed port and 5 to 10 s for one that says nothing. */
const hangMs = 60_000
// Each has databases and processes of its own, and mostly waits: for heartbeats, for deadlines.
t.jobs = 2
const besides = { buffered: true }

const said = (content: string) => ({ messages: [{ role: 'user', content }] })

/** A folder of its own for a database that is going to be killed. */
function dataDirOf(t: Test): string {
  const dir = mkdtempSync(join(tmpdir(), 'mv-crash-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

t.test('the MongoDB engine is killed under writes: what was stored is there', besides, async t => {
  const shared = await createTestConfig(t)
  const dir = dataDirOf(t)
  const lines: string[] = []
  const log = (line: string): void => void lines.push(line)
  let engine = await startMongodb(dir, { log })
  t.teardown(() => engine.stop())
  const config = { ...shared, mongodbUri: engine.url }
  await release(config, createLog('silent', 'test'))
  const backend = await createTestBackend(t, { config })
  const key = await buildKey(backend)
  const [web] = await Promise.all([startWeb(t, config), startWorker(t, config)])
  const stored = sendExchanges(() => web.base, key, { lanes: 2, wait: true })
  const others = await buildKey(backend)
  const promised = sendExchanges(() => web.base, others, { lanes: 2, pauseMs: 20 })

  for (let kill = 0; kill < 2; kill++) {
    const before = stored.acknowledged.size
    await waitUntil('it writes', () => stored.acknowledged.size > before + 20)
    const known = [...stored.acknowledged]
    process.kill(engine.pid, 'SIGKILL')
    await engine.unexpectedExit
    engine = await startMongodb(dir, { log })
    const texts = new Set(await textsOf(backend, key))
    const missing = known.filter(text => !texts.has(text))
    t.same(missing, [], 'all that was stored before the kill is there')
  }
  await Promise.all([stored.stop(), promised.stop()])
  t.same(Object.keys(Object.fromEntries(promised.statuses)), ['202'], 'accepting never stopped')
  await waitUntilSettled(backend)
  t.comment(`${stored.acknowledged.size} stored, ${promised.acknowledged.size} promised, 2 kills`)
  await checkJournal(t, backend, key, stored)
  await checkJournal(t, backend, others, promised)
})

const textsOf = async (backend: Backend, key: string): Promise<string[]> =>
  (await readDocuments(backend, key)).map(({ text }) => text)

t.test('Postgres is killed under load: every promise is kept', besides, async t => {
  const dir = dataDirOf(t)
  const lines: string[] = []
  const log = (line: string): void => void lines.push(line)
  let server = await startPostgres(dir, { log })
  t.teardown(() => server.stop())
  const gate = await startFaultProxy(t, server.url)
  const config = { ...(await createTestConfig(t)), databaseUrl: gate.url }
  await release(config, createLog('silent', 'test'))
  const backend = await createTestBackend(t, { config })
  const key = await buildKey(backend)
  const [web] = await Promise.all([startWeb(t, config), startWorker(t, config)])
  const journal = sendExchanges(() => web.base, key, { lanes: 4 })

  for (let kill = 0; kill < 2; kill++) {
    const before = journal.acknowledged.size
    await waitUntil('it is under load', () => journal.acknowledged.size > before + 40)
    process.kill(server.pid, 'SIGKILL')
    gate.shut()
    await server.unexpectedExit
    server = await startPostgres(dir, { log })
    gate.open(server.url)
  }
  const before = journal.acknowledged.size
  await waitUntil('it goes on by itself', () => journal.acknowledged.size > before + 10)
  await journal.stop()
  await waitUntilSettled(backend)
  t.comment(
    `${journal.acknowledged.size} acknowledged, 2 kills, ${JSON.stringify([...journal.statuses])}`,
  )
  const statuses = [...journal.statuses.keys()].sort()
  t.same(statuses, [202, 503], 'accepted, or told to come again')
  await checkJournal(t, backend, key, journal)
})

t.test('a store is out of reach', besides, async t => {
  const real = await createTestConfig(t)
  const postgres = await startFaultProxy(t, real.databaseUrl)
  const mongodb = await startFaultProxy(t, real.mongodbUri)
  const backend = await createTestBackend(t, { config: real })
  const config = { ...real, databaseUrl: postgres.url, mongodbUri: mongodb.url }
  const [web, worker] = await Promise.all([startWeb(t, config), startWorker(t, config)])
  const newClient = async (content: string) => {
    const key = await buildKey(backend)
    const client = createTestClient(web.base, key)
    t.equal((await client.post('/v1/memory/ingest?wait=true', said(content))).status, 200)
    return { key, client }
  }
  /** Answers of what needs the store that is away. */
  const checkRefused = (answers: TestAnswer[], how: string, error: RegExp) => {
    for (const { status, headers, body } of answers) {
      t.equal(status, 503, how)
      t.match(headers.get('retry-after'), /^\d+$/)
      t.match(body, { error })
    }
  }
  const waitUntilServed = (client: TestClient) =>
    waitUntil('it serves again', async () => (await client.get('/v1/memory/stats')).status === 200)

  await t.test('Postgres: 503 with Retry-After, then all is well again', async t => {
    const { key, client } = await newClient('before')
    for (const how of ['shut', 'freeze'] as const) {
      postgres[how]()
      const begun = Date.now()
      const answers = await Promise.all([
        client.post('/v1/memory/ingest', said('meanwhile')),
        client.post('/v1/memory/search', { query: 'before', limit: 1 }),
        client.get('/v1/memory/stats'),
        client.post('/v1/keys'),
      ])
      checkRefused(answers, how, /database is out of reach/)
      t.ok(Date.now() - begun < hangMs, `${how}: answered after ${Date.now() - begun} ms`)
      t.equal((await client.get('/health')).status, 200, 'it is alive, and says so')
      postgres.open()
      await waitUntilServed(client)
      const stored = await client.post('/v1/memory/ingest?wait=true', said(`after ${how}`))
      t.equal(stored.status, 200, 'so does the worker')
    }
    await waitUntilSettled(backend)
    const texts = (await textsOf(backend, key)).filter(text => text !== 'meanwhile')
    t.same(texts.sort(), ['after freeze', 'after shut', 'before'])
  })

  await t.test('MongoDB: writes are accepted, reads say 503, then all is well', async t => {
    const [{ key, client }, ...others] = [
      await newClient('the kettle is red'),
      await newClient('the kettle is red'),
      await newClient('the kettle is red'),
    ]
    const question = { query: 'kettle', limit: 1 }
    t.equal((await client.post('/v1/memory/search', question)).body.totalMemories, 1)
    const promised: string[] = []
    for (const how of ['shut', 'freeze'] as const) {
      const other = others.pop()!.client
      mongodb[how]()
      const begun = Date.now()
      const held = { status: 200, body: { totalMemories: 1 } }
      const answer = await client.post('/v1/memory/search', question)
      t.match(answer, held, `${how}: a vault that is held`)
      const text = `promised while ${how}`
      t.equal((await client.post('/v1/memory/ingest', said(text))).status, 202, how)
      promised.push(text)
      const reads = [other.post('/v1/memory/search', question), client.get('/v1/memory/stats')]
      checkRefused(await Promise.all(reads), how, /memory store is out of reach/)
      t.ok(Date.now() - begun < hangMs, `${how}: answered after ${Date.now() - begun} ms`)
      mongodb.open()
      await waitUntilServed(client)
      t.equal((await other.post('/v1/memory/search', question)).body.totalMemories, 1)
      await waitUntilSettled(backend)
      // The search reads what was stored meanwhile: from here on the web process holds all of it.
      const all = { query: 'promised', limit: 5 }
      const { body: found } = await client.post('/v1/memory/search', all)
      t.equal(found.totalMemories, 1 + promised.length, `${how}: what was promised is stored`)
    }
    t.same((await textsOf(backend, key)).sort(), [...promised, 'the kettle is red'].sort())
  })
  t.notMatch(web.output() + worker.output(), /process\.crashed/)
})
