import '#test/setup/env.ts'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import t, { type Test } from 'tap'
import { embeddedEnvironment } from '#scripts/embedded-environment.ts'
import { createTestClient } from '#test/support/start/api.ts'
import {
  checkPrintedKeys,
  environmentWithoutDatabases,
  ingestText,
  searchTexts,
  startService,
  type StartedService,
} from '#test/support/start/npm-start.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

t.setTimeout(0)

const { DATABASE_URL, MONGODB_URI } = process.env

function folder(t: Test): string {
  const dir = mkdtempSync(join(tmpdir(), 'vault-start-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

const npmStart = ['npm', 'start', '--no-update-notifier'] as const

const answers = ({ credentials }: StartedService): Promise<boolean> =>
  fetch(`${credentials.base_url}/health`).then(
    async response => (await response.text(), response.ok),
    () => false,
  )

t.test('one command: a service that remembers, and keeps its data whatever happens', async t => {
  const dataDir = folder(t)
  const modeOf = (name: string): number => statSync(join(dataDir, name)).mode & 0o777

  await t.test('a first start that fails loses no keys: the port is taken', async t => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    t.teardown(() => other.close())
    const port = String((other.address() as AddressInfo).port)
    const refused = startService(t, dataDir, { PORT: port })
    await t.rejects(refused, { message: new RegExp(`PORT|${port}`) })
    t.equal(modeOf('credentials.json'), 0o600)
  })

  let keys: StartedService['credentials'] | undefined
  await t.test('npm start; SIGTERM to npm drains the service, then npm ends', async t => {
    const first = await startService(t, dataDir, {}, npmStart)
    keys = first.credentials
    t.match(keys, {
      base_url: /^http:\/\/127\.0\.0\.1:\d+$/,
      memory_key: /^mk_[0-9A-Za-z]{32}$/,
      admin_key: /^mk_admin_[0-9A-Za-z]{32}$/,
    })
    await checkPrintedKeys(t, first)
    for (const page of ['/console', '/docs']) {
      t.match(first.output(), `${keys.base_url}${page}\n`, `${page} is named`)
      t.equal((await fetch(keys.base_url + page)).status, 200)
    }
    const [, secret] = /\/console#\/open\/(\S+)\n/.exec(first.output()) ?? []
    const openLink = () =>
      fetch(`${keys!.base_url}/console/login/links/open`, {
        method: 'POST',
        body: JSON.stringify({ secret }),
      })
    t.same(await (await openLink()).json(), { key: keys.memory_key })
    t.equal((await openLink()).status, 403, 'once')
    t.equal(modeOf('credentials.json'), 0o600)
    t.equal(modeOf('secrets.json'), 0o600)
    t.equal((await ingestText(first.client, 'The piano was tuned in June')).status, 200)
    t.equal((await searchTexts(first.client, 'piano tuned'))[0], 'The piano was tuned in June')
    first.child.kill('SIGTERM')
    t.equal(await first.exit, 0, first.output())
    t.notOk(await answers(first), 'nothing answers once npm has ended')
  })

  await t.test('kill -9 of npm: the service follows', async t => {
    // A key that has come into the environment since takes no vault to its own embeddings.
    const second = await startService(t, dataDir, { OPENAI_API_KEY: 'sk-none' }, npmStart)
    t.match(second.output(), /Vaults stay with local.*EMBEDDINGS=openai/)
    t.equal(second.credentials.memory_key, keys!.memory_key)
    t.notMatch(second.output(), 'Memory Key  mk_', 'keys are printed once')
    t.equal((await searchTexts(second.client, 'piano tuned'))[0], 'The piano was tuned in June')
    t.equal((await ingestText(second.client, 'The fence was painted green')).status, 200)
    second.child.kill('SIGKILL')
    await waitUntil('it has ended', async () => !(await answers(second)))
  })

  await t.test('kill -9 of the service; its folder is of one service at a time', async t => {
    const empty = { DATABASE_URL: '', MONGODB_URI: '', MASTER_KEY: '', KEY_PEPPER: '' }
    let third: StartedService | null = null
    await waitUntil('the folder is free', async () => {
      third = await startService(t, dataDir, empty).catch(() => null)
      return third !== null
    })
    const { child, client, exit } = third!
    t.equal((await searchTexts(client, 'fence painted'))[0], 'The fence was painted green')
    t.match(embeddedEnvironment({ ...empty, DATA_DIR: dataDir }), {
      DATABASE_URL: /^postgres/,
      MONGODB_URI: /^mongodb/,
      MASTER_KEY: /^[0-9a-f]{64}$/,
    })
    await t.rejects(startService(t, dataDir), { message: /in use by process/ })
    t.equal((await ingestText(client, 'The kettle is new')).status, 200)
    child.kill('SIGKILL')
    await exit
  })

  await t.test('a database that dies ends the service with a clear message', async t => {
    const service = await startService(t, dataDir)
    t.equal((await searchTexts(service.client, 'kettle new'))[0], 'The kettle is new')
    const postmaster = readFileSync(join(dataDir, 'postgres/data/postmaster.pid'), 'utf8')
    process.kill(Number(postmaster.split('\n')[0]), 'SIGKILL')
    t.equal(await service.exit, 1, service.output())
    // What a process said last may come after its end.
    await waitUntil('it has said why', () => /stays: start again/.test(service.output()))
    t.match(service.output(), /A database has ended: PostgreSQL ended/)
    t.match(service.output(), /what was stored stays: start again/)
    t.notMatch(service.output(), /\n\s+at .*start\.ts/, 'no stack')
  })

  await t.test('the next start has all; SIGINT ends it with 0', async t => {
    const last = await startService(t, dataDir)
    t.equal((await searchTexts(last.client, 'piano tuned'))[0], 'The piano was tuned in June')
    last.child.kill('SIGINT')
    t.equal(await last.exit, 0, last.output())
  })
})

t.test('npm run dev: what has loaded a changed file is started again', async t => {
  const dev = await startService(t, folder(t), {}, ['npm', 'run', 'dev'])
  t.equal((await ingestText(dev.client, 'The piano was tuned in June')).status, 200)
  const now = new Date()
  utimesSync('api/index.ts', now, now)
  await waitUntil('it starts again', () => dev.output().includes("Restarting 'api/index.ts'"))
  dev.child.kill('SIGTERM')
  t.equal(await dev.exit, 0, dev.output())
  t.notOk(await answers(dev), 'nothing answers once npm has ended')
})

t.test('with addresses of its own nothing embedded is touched', async t => {
  const parent = folder(t)
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
  const parent = folder(t)
  const faults = { DATA_DIR: join(parent, 'data'), PORT: 'http', EMBEDDINGS: 'magic' }
  const child = spawn(process.execPath, ['scripts/start.ts'], {
    env: { ...environmentWithoutDatabases, ...faults },
  })
  let said = ''
  child.stderr.on('data', chunk => (said += chunk))
  const code = await new Promise(resolve => child.once('close', resolve))
  t.equal(code, 1, said)
  t.match(said, /PORT must be a whole number/)
  t.match(said, /EMBEDDINGS must be/)
  t.same(readdirSync(parent), [])
})
