import '#test/setup/env.ts'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import t from 'tap'
import { embeddedEnvironment } from '#scripts/embedded-environment.ts'
import { createTestClient } from '#test/support/api.ts'
import {
  searchTexts,
  environmentWithoutDatabases,
  ingestText,
  startService,
} from '#test/support/npm-start.ts'
import { waitUntil } from '#test/support/wait-until.ts'

const { DATABASE_URL, MONGODB_URI } = process.env

t.test('one command: a service that remembers, keeps its data and survives kill -9', async t => {
  const dataDir = mkdtempSync(join(tmpdir(), 'vault-start-'))
  t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))

  const first = await startService(t, dataDir)
  t.match(first.credentials, {
    base_url: /^http:\/\/127\.0\.0\.1:\d+$/,
    memory_key: /^mk_[0-9A-Za-z]{32}$/,
    admin_key: /^mk_admin_[0-9A-Za-z]{32}$/,
  })
  t.match(first.output(), first.credentials.memory_key, 'the key is printed')
  for (const page of ['/console', '/docs']) {
    t.match(first.output(), `${first.credentials.base_url}${page}\n`, `${page} is named`)
    t.equal((await fetch(first.credentials.base_url + page)).status, 200)
  }
  t.equal(statSync(join(dataDir, 'credentials.json')).mode & 0o777, 0o600)
  t.equal(statSync(join(dataDir, 'secrets.json')).mode & 0o777, 0o600)
  t.equal((await ingestText(first.client, 'The piano was tuned in June')).status, 200)
  t.same(await searchTexts(first.client, 'piano tuned'), ['The piano was tuned in June'])

  first.child.kill('SIGTERM')
  t.equal(await first.exit, 0, `SIGTERM drains and exits with 0: ${first.output()}`)

  // A key that has come into the environment since takes no vault to its own embeddings.
  const second = await startService(t, dataDir, { OPENAI_API_KEY: 'sk-none' })
  t.match(second.output(), /Vaults stay with local.*EMBEDDINGS=openai/)
  t.equal(second.credentials.memory_key, first.credentials.memory_key)
  t.notMatch(second.output(), 'Memory Key  mk_', 'keys are printed once')
  t.same(await searchTexts(second.client, 'piano tuned'), ['The piano was tuned in June'])
  await ingestText(second.client, 'The fence was painted green')
  second.child.kill('SIGKILL')
  await second.exit

  const empty = { DATABASE_URL: '', MONGODB_URI: '', MASTER_KEY: '', KEY_PEPPER: '' }
  const third = await startService(t, dataDir, empty)
  t.equal((await searchTexts(third.client, 'fence painted'))[0], 'The fence was painted green')
  t.match(embeddedEnvironment({ ...empty, DATA_DIR: dataDir }), {
    DATABASE_URL: /^postgres/,
    MONGODB_URI: /^mongodb/,
    MASTER_KEY: /^[0-9a-f]{64}$/,
  })
  third.child.kill('SIGINT')
  t.equal(await third.exit, 0, third.output())
})

t.test(
  'a database that dies ends the service with a clear message; the next start has all',
  async t => {
    const dataDir = mkdtempSync(join(tmpdir(), 'vault-died-'))
    t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))
    let service = await startService(t, dataDir)
    t.equal((await ingestText(service.client, 'The piano was tuned in June')).status, 200)
    const postmaster = readFileSync(join(dataDir, 'postgres/data/postmaster.pid'), 'utf8')
    process.kill(Number(postmaster.split('\n')[0]), 'SIGKILL')
    t.equal(await service.exit, 1, service.output())
    // What a process said last may come after its end.
    await waitUntil('it has said why', () => /stays: start again/.test(service.output()))
    t.match(service.output(), /A database has ended: PostgreSQL ended/)
    t.match(service.output(), /what was stored stays: start again/)
    t.notMatch(service.output(), /\n\s+at .*start\.ts/, 'no stack')

    service = await startService(t, dataDir)
    t.same(await searchTexts(service.client, 'piano tuned'), ['The piano was tuned in June'])
    service.child.kill('SIGTERM')
    t.equal(await service.exit, 0, service.output())
  },
)

t.test('with addresses of its own nothing embedded is touched', async t => {
  const parent = mkdtempSync(join(tmpdir(), 'vault-own-'))
  t.teardown(() => rmSync(parent, { recursive: true, force: true }))
  const name = `start_${randomBytes(4).toString('hex')}`
  const admin = new pg.Client({ connectionString: DATABASE_URL })
  await admin.connect()
  await admin.query(`create database ${name}`)
  const databaseUrl = new URL(DATABASE_URL!)
  databaseUrl.pathname = `/${name}`

  const own = await startService(t, join(parent, 'data'), {
    DATABASE_URL: databaseUrl.href,
    MONGODB_URI: MONGODB_URI!.replace(/\/\w*\?/, `/${name}?`),
    MASTER_KEY: '22'.repeat(32),
    KEY_PEPPER: 'a pepper for the test',
  })
  t.same(readdirSync(parent), [], 'no data directory is made')
  t.match(own.output(), 'The keys of the first account, shown once:')
  const [, key, base] = /Memory Key {2}(\S+)[\s\S]*ready at (\S+)/.exec(own.output()) ?? []
  t.equal((await ingestText(createTestClient(base!, key), 'The kettle is new')).status, 200)
  own.child.kill('SIGTERM')
  t.equal(await own.exit, 0, own.output())
  await admin.query(`drop database ${name} with (force)`)
  await admin.end()
})

t.test('faults of the environment are said at once, and nothing is started', async t => {
  const parent = mkdtempSync(join(tmpdir(), 'vault-fault-'))
  t.teardown(() => rmSync(parent, { recursive: true, force: true }))
  const child = spawn(process.execPath, ['scripts/start.ts'], {
    env: {
      ...environmentWithoutDatabases,
      DATA_DIR: join(parent, 'data'),
      PORT: 'http',
      EMBEDDINGS: 'magic',
    },
  })
  let said = ''
  child.stderr.on('data', chunk => (said += chunk))
  const code = await new Promise(resolve => child.once('close', resolve))
  t.equal(code, 1, said)
  t.match(said, /PORT must be a whole number/)
  t.match(said, /EMBEDDINGS must be/)
  t.same(readdirSync(parent), [])
})

t.test('a port that is taken is named', async t => {
  const dataDir = mkdtempSync(join(tmpdir(), 'vault-port-'))
  t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))
  const first = await startService(t, dataDir)
  const other = mkdtempSync(join(tmpdir(), 'vault-port-'))
  t.teardown(() => rmSync(other, { recursive: true, force: true }))
  const { port } = new URL(first.credentials.base_url)
  await t.rejects(startService(t, other, { PORT: port }), { message: new RegExp(`PORT|${port}`) })
  await t.rejects(startService(t, dataDir), { message: /in use by process/ })
  first.child.kill('SIGTERM')
  t.equal(await first.exit, 0, first.output())
})
