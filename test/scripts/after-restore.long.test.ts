import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import t, { type Test } from 'tap'
import { openBackend, type Backend } from '#shared/backend.ts'
import type { Config } from '#shared/core/config.ts'
import { sweepAll } from '#workers/sweep-all.ts'
import { createLog } from '#shared/core/log.ts'
import {
  buildKey,
  createTestClient,
  startTestApi,
  startJobWorkers,
  type TestClient,
} from '#test/support/start/api.ts'
import { createTestConfig } from '#test/support/start/backend.ts'
import { makeErasuresDue } from '#test/support/checks/alter.ts'
import { processEnvironment } from '#test/support/start/processes.ts'
import { runScript } from '#test/support/start/run-script.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { buildTeam, seedTeamMemories, type Team } from '#test/support/start/team.ts'
import { waitUntilSettled } from '#test/support/checks/exchange-journal.ts'
import {
  resolveCaller,
  readDocuments,
  insertMemories,
} from '#test/support/start/insert-memories.ts'

const log = createLog('silent', 'test')

/** The service on these databases for as long as `does` takes. */
async function served(
  t: Test,
  config: Config,
  does: (backend: Backend, base: string) => Promise<void>,
  { working = true } = {},
): Promise<void> {
  const backend = await openBackend(config, log, 'worker')
  try {
    if (working) await startJobWorkers(backend)
    const { base } = await startTestApi(t, backend)
    await does(backend, base)
  } finally {
    await backend.close()
  }
}

/** Another database that is what this one is now. */
async function copyOf(t: Test, databaseUrl: string): Promise<string> {
  const url = new URL(databaseUrl)
  const name = url.pathname.slice(1)
  url.pathname = `/${name}_backup`
  const admin = new pg.Client({ connectionString: process.env.DATABASE_URL })
  await admin.connect()
  // Connections that were just closed may still be there for the server.
  const copied = () =>
    admin.query(`create database ${name}_backup template ${name}`).then(
      () => true,
      (error: { code?: string }) => {
        if (error.code === '55006') return false
        throw error
      },
    )
  await waitUntil('the database is copied', copied)
  t.teardown(async () => {
    await admin.query(`drop database if exists ${name}_backup with (force)`)
    await admin.end()
  })
  return url.href
}

/** Runs the script that the README tells to run after a restore. */
const script = (config: Config, ...args: string[]) =>
  runScript('scripts/after-restore.ts', args, processEnvironment(config))

const tell = async (client: TestClient, content: string, session?: string): Promise<void> => {
  const messages = [{ role: 'user', content }]
  await client.post('/v1/memory/ingest?wait=true', {
    messages,
    ...(session && { session_id: session }),
  })
}

const found = async (client: TestClient, query: string, session?: string): Promise<string[]> =>
  (
    await client.post(
      '/v1/memory/search',
      { query, limit: 50 },
      session ? { 'x-session-id': session } : {},
    )
  ).body.memories.map(({ content }: { content: string }) => content)

const debtOf = async (client: TestClient) =>
  (await client.post('/v1/memory/date-search', { from: '2200-01-01', to: '2200-01-01' })).body
    .reflection.unconsolidated.raw

t.test('the older Postgres beside the later MongoDB, as a restore leaves them', async t => {
  const config = await createTestConfig(t)
  let key = ''
  let user = ''
  await served(t, config, async (backend, base) => {
    key = await buildKey(backend, 'owner@example.com')
    user = await buildKey(backend)
    const client = createTestClient(base, key)
    await tell(client, 'the zebra lives in the first enclosure')
    await tell(client, 'the zebra of the session', 'trip')
    const inSession = { headers: { 'x-session-id': 'trip' } }
    t.equal((await client.send('DELETE', '/v1/memory', inSession)).status, 200)
    const other = createTestClient(base, user)
    await insertMemories(
      backend,
      user,
      Array.from({ length: 15 }, (_, n) => ({ text: `an old fact, number ${n}` })),
    )
    await tell(other, 'something about a walk', 'walk')
  })
  const backup = { ...config, databaseUrl: await copyOf(t, config.databaseUrl) }

  let left = 0
  await served(t, config, async (_backend, base) => {
    const client = createTestClient(base, key)
    t.equal((await client.send('DELETE', '/v1/memory')).status, 200)
    await tell(client, 'the giraffe came after the backup')
    await tell(client, 'the giraffe of the session', 'trip')
    const other = createTestClient(base, user)
    const { items } = (await other.get('/v1/memory/list?limit=5')).body
    const ids = items.map(({ memory_id }: { memory_id: string }) => memory_id)
    t.equal((await other.post('/v1/memory/delete-ids', { ids })).body.deleted, 5)
    t.equal(
      (await other.send('DELETE', '/v1/memory', { headers: { 'x-session-id': 'walk' } })).status,
      200,
    )
    await tell(other, 'something about another walk', 'walk')
    left = (await debtOf(other)).units
  })
  t.equal(left, 10)

  const dry = await script(backup, '--dry-run', '--json')
  t.match(dry, { code: 0, err: '' })
  t.match(JSON.parse(dry.out), { dry_run: true, vaults: 2, behind: 2, busy: 0 })
  const { code, out, err } = await script(backup)
  t.equal(code, 0, out + err)
  t.match(out, /cleared and used since/)
  t.match(out, /raw units 15 -> 10/)
  t.match(out, /2 vaults looked at, 2 put right/)
  t.match(JSON.parse((await script(backup, '--json')).out), { behind: 0, changed: [] })

  await served(t, backup, async (backend, base) => {
    const client = createTestClient(base, key)
    await makeErasuresDue(backend)
    await sweepAll(backend)
    t.same(await found(client, 'zebra giraffe'), ['the giraffe came after the backup'])
    t.same(await found(client, 'zebra giraffe', 'trip'), ['the giraffe of the session'])
    t.equal((await client.get('/v1/memory/stats')).body.memories, 2)
    t.equal((await debtOf(client)).units, 1)
    t.match((await client.get('/v1/memory/sessions')).body.items, [{ session_id: 'trip' }])

    const other = createTestClient(base, user)
    t.same(await debtOf(other), { ...(await debtOf(other)), units: 10 })
    t.equal((await found(other, 'an old fact')).length, 10)
    t.same(await found(other, 'walk', 'walk'), ['something about another walk'])

    const before = await resolveCaller(backend, key)
    const cleared = await client.send('DELETE', '/v1/memory')
    t.match(cleared, { status: 200, body: { deleted: 2 } })
    t.ok((await resolveCaller(backend, key)).scope.epoch > before.scope.epoch)
    t.same(await found(client, 'zebra giraffe'), [])
    t.same((await client.get('/v1/memory/export')).body, [])
    t.same(await readDocuments(backend, key), [])
  })
})

t.test('without it, what had been stored in between never comes back by itself', async t => {
  const config = await createTestConfig(t)
  let key = ''
  await served(t, config, async (backend, base) => {
    key = await buildKey(backend)
    await tell(createTestClient(base, key), 'the zebra', 'trip')
    await tell(createTestClient(base, key), 'the zebra')
  })
  const backup = { ...config, databaseUrl: await copyOf(t, config.databaseUrl) }
  await served(t, config, async (_backend, base) => {
    const client = createTestClient(base, key)
    const inSession = { headers: { 'x-session-id': 'trip' } }
    await client.send('DELETE', '/v1/memory', inSession)
    await tell(client, 'the giraffe', 'trip')
    await client.send('DELETE', '/v1/memory')
    await tell(client, 'the giraffe')
  })
  // Epochs are seconds, and putting a database back takes longer than one.
  await delay(1_100)
  await served(t, backup, async (backend, base) => {
    const client = createTestClient(base, key)
    t.same(await found(client, 'giraffe'), [])
    const inSession = { headers: { 'x-session-id': 'trip' } }
    t.equal((await client.send('DELETE', '/v1/memory', inSession)).status, 200)
    t.same(await found(client, 'giraffe', 'trip'), [])
    t.equal((await client.send('DELETE', '/v1/memory')).status, 200)
    t.same(await found(client, 'giraffe'), [])
    t.equal((await client.get('/v1/memory/stats')).body.memories, 0)
    t.same((await client.get('/v1/memory/export')).body, [])
    t.same(await readDocuments(backend, key), [], 'it is gone with the rest')
  })
})

t.test('work that was waiting when Postgres was backed up counts once', async t => {
  const config = await createTestConfig(t)
  let key = ''
  const waiting = async (_backend: Backend, base: string) => {
    const messages = [{ role: 'user', content: 'accepted before the backup' }]
    await createTestClient(base, key).post('/v1/memory/ingest', { messages })
  }
  await served(t, config, async (backend, base) => {
    key = await buildKey(backend)
    await tell(createTestClient(base, key), 'stored before the backup')
  })
  await served(t, config, waiting, { working: false })
  const backup = { ...config, databaseUrl: await copyOf(t, config.databaseUrl) }
  await served(t, config, async (backend, base) => {
    await tell(createTestClient(base, key), 'stored after the backup')
    await waitUntilSettled(backend)
    t.equal((await resolveCaller(backend, key)).keyRow.rawUnits, 3)
  })
  t.match(await script(backup), { code: 0, out: /raw units 1 -> 2/ })
  await served(t, backup, async (backend, base) => {
    const client = createTestClient(base, key)
    await tell(client, 'stored after the restore')
    await waitUntilSettled(backend)
    t.equal((await resolveCaller(backend, key)).keyRow.rawUnits, 4)
    t.equal((await found(client, 'backup restore')).length, 4)
  })
})

t.test('shared memories are seen again, by those whose roles allow it', async t => {
  const config = await createTestConfig(t)
  let team: Team | undefined
  let member = ''
  await served(t, config, async backend => {
    team = await buildTeam(backend)
    await team.defineRole('Accounting', ['finance'])
    member = await team.addMember('ada', ['Accounting'])
    await seedTeamMemories(backend, team, [{ text: 'the office opens at eight' }])
  })
  const backup = { ...config, databaseUrl: await copyOf(t, config.databaseUrl) }
  await served(t, config, async backend => {
    await seedTeamMemories(backend, team!, [
      { text: 'the office budget was cut', tags: ['finance'] },
      { text: 'the office logo is blue', tags: ['brand'] },
    ])
  })
  t.match(await script(backup), { code: 0 })
  await served(t, backup, async (_backend, base) => {
    const seen = await found(createTestClient(base, member), 'office')
    t.same(seen.toSorted(), ['the office budget was cut', 'the office opens at eight'])
  })
})

t.test('a vault with work under way is left for another run', async t => {
  const config = await createTestConfig(t)
  let key = ''
  await served(t, config, async (backend, base) => {
    key = await buildKey(backend)
    await tell(createTestClient(base, key), 'a fact')
  })
  const upload = async (_backend: Backend, base: string) => {
    const headers = { 'content-type': 'application/x-ndjson', prefer: 'respond-async' }
    const body = '{"content":"one"}\n{"content":"two"}'
    await createTestClient(base, key).send('POST', '/v1/memory/upload', { headers, body })
  }
  await served(t, config, upload, { working: false })
  t.match(await script(config), { code: 1, out: /1 have running jobs/ })
  await served(t, config, async (backend, base) => {
    await tell(createTestClient(base, key), 'another fact')
    const { items } = (await createTestClient(base, key).get('/v1/operations?kind=upload')).body
    t.match(items, [{ state: /done|running|accepted/ }])
    await waitUntil(
      'the upload is done',
      async () => (await resolveCaller(backend, key)).keyRow.rawUnits === 4,
    )
  })
  t.match(await script(config, '--json'), { code: 0, out: /"behind":0/ })
})

t.test('the command line, and databases that are not there', async t => {
  const config = await createTestConfig(t)
  t.match(await script(config, '--help'), { code: 0, out: /^Usage: .+\n[\s\S]+--dry-run/ })
  t.match(await script(config, '--nonsense'), { code: 2, err: /nonsense[\s\S]+Usage/ })
  const away = { ...config, databaseUrl: 'postgres://127.0.0.1:9/none' }
  t.match(await script(away), {
    code: 1,
    err: /^PostgreSQL at 127\.0\.0\.1:9 .+\n.*DATABASE_URL.*\n$/,
  })
})
