import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MongoClient } from 'mongodb'
import { Client } from 'pg'
import t, { type Test } from 'tap'
import { waitForExit, isAlive } from '#scripts/services/process.ts'
import {
  readRunningServices,
  startServices,
  type DatabaseServices,
} from '#scripts/services/services.ts'

type Given = { databaseUrl?: string; mongodbUri?: string }

const log = () => {}
const onlyPostgres = { mongodbUri: 'mongodb://elsewhere/a' }
const notRoot = process.getuid?.() !== 0 && 'this is not root'
const onlyMongodb = { databaseUrl: 'postgresql://elsewhere/a' }
const { NODE_OPTIONS: _options, ...env } = process.env

/** A folder that nobody but us may enter, gone after the test. */
async function privateDir(t: Test): Promise<string> {
  const dir = realpathSync(await mkdtemp(join(tmpdir(), 'vault-')))
  await chmod(dir, 0o700)
  t.teardown(() => rm(dir, { recursive: true, force: true }))
  return dir
}

/** Services of this process, stopped after the test; those given are not started. */
async function started(t: Test, dataDir: string, given: Given = {}): Promise<DatabaseServices> {
  const services = await startServices({ dataDir, log, forTests: true, ...given })
  t.teardown(() => services.stop())
  return services
}

/** A process that starts services and keeps them, until it is killed. */
async function launched(
  t: Test,
  dataDir: string,
): Promise<DatabaseServices & { launcher: ChildProcess }> {
  const program = `
    import { startServices } from '#scripts/services/services.ts'
    const dataDir = process.argv[1]
    const { stop, died, ...services } = await startServices({ dataDir, log() {}, forTests: true })
    process.send(services)
  `
  const launcher = spawn(process.execPath, ['--input-type=module', '-e', program, dataDir], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env,
  })
  t.teardown(() => launcher.kill('SIGKILL'))
  const [services] = (await once(launcher, 'message')) as [DatabaseServices]
  return { ...services, launcher }
}

async function remember(
  { databaseUrl, mongodbUri }: DatabaseServices,
  word: string,
): Promise<void> {
  await withClients({ databaseUrl, mongodbUri }, async (postgres, mongodb) => {
    await postgres.query('create table if not exists words (word text)')
    await postgres.query('insert into words values ($1)', [word])
    await mongodb.db().collection('words').insertOne({ word })
  })
}

async function remembered(services: DatabaseServices): Promise<string[][]> {
  return await withClients(services, async (postgres, mongodb) => {
    const { rows } = await postgres.query<{ word: string }>('select word from words order by word')
    const documents = mongodb.db().collection<{ word: string }>('words').find().sort({ word: 1 })
    return [rows.map(row => row.word), (await documents.toArray()).map(({ word }) => word)]
  })
}

async function withClients<Result>(
  { databaseUrl, mongodbUri }: Pick<DatabaseServices, 'databaseUrl' | 'mongodbUri'>,
  work: (postgres: Client, mongodb: MongoClient) => Promise<Result>,
): Promise<Result> {
  const postgres = new Client(databaseUrl)
  const mongodb = new MongoClient(mongodbUri)
  try {
    await postgres.connect()
    return await work(postgres, mongodb)
  } finally {
    await Promise.all([postgres.end(), mongodb.close()])
  }
}

t.test('what was stored is there at the next start, and a stop leaves nothing running', async t => {
  const dataDir = join(await privateDir(t), 'data')
  const first = await started(t, dataDir)
  await remember(first, 'one')
  await Promise.all([first.stop(), first.stop()])
  t.notOk(isAlive(first.pids.postgres!))
  t.notOk(isAlive(first.pids.mongodb!))

  const second = await started(t, dataDir)
  t.same(await remembered(second), [['one'], ['one']])
  t.equal(second.mongodbUri, first.mongodbUri, 'clients find MongoDB under the same address')
})

t.test('a set that runs', async t => {
  const dataDir = join(await privateDir(t), 'data')
  t.equal(readRunningServices(dataDir), undefined)
  const services = await started(t, dataDir)

  await t.test('only the owner can read the folder, the password, the addresses', async t => {
    const modeOf = (name: string) => statSync(join(dataDir, name)).mode & 0o777
    for (const name of ['.', 'mongodb', 'mongodb/run', 'postgres'])
      t.equal(modeOf(name), 0o700, name)
    for (const name of ['services.json', 'postgres/password']) t.equal(modeOf(name), 0o600, name)
  })

  await t.test('PostgreSQL asks for its password and holds UTF-8 in the order of C', async t => {
    const stranger = new Client(services.databaseUrl.replace(/:[0-9a-f]+@/, ':wrong@'))
    await t.rejects(stranger.connect(), { code: '28P01' })

    const postgres = new Client(services.databaseUrl)
    await postgres.connect()
    t.teardown(() => postgres.end())
    const { rows } = await postgres.query(
      `select datcollate, pg_encoding_to_char(encoding) as encoding,
         current_setting('fsync') as fsync, current_setting('max_connections') as connections
       from pg_database where datname = current_database()`,
    )
    t.match(rows, [{ encoding: 'UTF8', fsync: 'off', connections: '200' }])
    if (process.platform === 'linux') t.match(rows, [{ datcollate: 'C.UTF-8' }])
  })

  await t.test('as root PostgreSQL runs as someone else', { skip: notRoot }, async t => {
    const status = readFileSync(`/proc/${services.pids.postgres}/status`, 'utf8')
    t.match(status, /^Uid:\s+[1-9]/m)
  })

  await t.test('conflict: a folder in use names the process that uses it', async t => {
    await t.rejects(startServices({ dataDir, log, forTests: true }), {
      reason: 'conflict',
      message: `${dataDir} is in use by process ${process.pid}`,
    })
  })

  await t.test('its addresses can be found for as long as it runs', async t => {
    const { databaseUrl, mongodbUri } = services
    t.same(readRunningServices(dataDir), { databaseUrl, mongodbUri })
    await services.stop()
    t.equal(readRunningServices(dataDir), undefined)
  })
})

t.test('two starts at once: one serves, the other gives way', async t => {
  const dataDir = await privateDir(t)
  const both = await Promise.allSettled([1, 2].map(() => started(t, dataDir)))
  t.same(both.map(one => one.status).toSorted(), ['fulfilled', 'rejected'])
  t.match(both.find(one => one.status === 'rejected')?.reason, { reason: 'conflict' })
})

t.test('after a kill of everything the next start finds all that was stored', async t => {
  const dataDir = await privateDir(t)
  const { launcher, pids, ...services } = await launched(t, dataDir)
  await remember({ pids, ...services }, 'before')
  for (const pid of [launcher.pid!, pids.postgres!, pids.mongodb!]) process.kill(pid, 'SIGKILL')
  // It holds the folder until it has ended, and the next start waits half a second for that.
  await waitForExit(launcher.pid!, 60_000)

  const next = await started(t, dataDir)
  t.same(await remembered(next), [['before'], ['before']])
  await remember(next, 'later')
  t.same(await remembered(next), [
    ['before', 'later'],
    ['before', 'later'],
  ])
})

t.test('after a kill of the launcher MongoDB ends and PostgreSQL is taken over', async t => {
  const dataDir = await privateDir(t)
  const { launcher, pids, ...services } = await launched(t, dataDir)
  await remember({ pids, ...services }, 'before')
  launcher.kill('SIGKILL')
  t.ok(await waitForExit(pids.mongodb!, 60_000), 'the engine does not outlive its launcher')

  const lines: string[] = []
  const next = await startServices({ dataDir, log: line => lines.push(line), forTests: true })
  t.teardown(() => next.stop())
  t.equal(next.pids.postgres, pids.postgres)
  t.same(lines, [`Took over PostgreSQL as an earlier start left it (process ${pids.postgres})`])
  t.same(await remembered(next), [['before'], ['before']])

  await next.stop()
  t.notOk(isAlive(pids.postgres!), 'what was taken over is stopped like what was started')
})

t.test('a process id that belongs to someone else by now is not taken for PostgreSQL', async t => {
  const dataDir = await privateDir(t)
  await (await started(t, dataDir, onlyPostgres)).stop()
  const stranger = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { env })
  t.teardown(() => stranger.kill('SIGKILL'))
  const file = join(dataDir, 'postgres/data/postmaster.pid')
  writeFileSync(file, `${stranger.pid}\n${dataDir}\n1\n5432\n\n127.0.0.1\n1 1\nready   \n`)

  const { pids } = await started(t, dataDir, onlyPostgres)
  t.not(pids.postgres, stranger.pid)
  t.ok(isAlive(stranger.pid!))
})

t.test('data that was being made when everything was killed is made again', async t => {
  const dataDir = await privateDir(t)
  mkdirSync(join(dataDir, 'postgres/data.new'), { recursive: true })
  writeFileSync(join(dataDir, 'postgres/data.new/PG_VERSION'), '18\n')
  const { databaseUrl } = await started(t, dataDir, onlyPostgres)
  const postgres = new Client(databaseUrl)
  await t.resolves(postgres.connect())
  await postgres.end()
})

t.test('a service that is killed is reported, in its own words where it has some', async t => {
  const one = await started(t, await privateDir(t), onlyPostgres)
  process.kill(one.pids.postgres!, 'SIGKILL')
  t.match(await one.unexpectedExit, /^PostgreSQL ended\. .*ready to accept connections/s)

  const two = await started(t, await privateDir(t), onlyMongodb)
  process.kill(two.pids.mongodb!, 'SIGKILL')
  t.match(await two.unexpectedExit, /^The MongoDB engine ended \(SIGKILL\)/)
})

t.test('a server that does not start says why, and leaves the folder free', async t => {
  const dataDir = await privateDir(t)
  await (await started(t, dataDir, onlyPostgres)).stop()
  const settings = join(dataDir, 'postgres/data/postgresql.conf')
  const sound = readFileSync(settings)
  writeFileSync(settings, 'shared_buffers = rubbish\n')
  await t.rejects(startServices({ dataDir, log, ...onlyPostgres }), {
    message: /PostgreSQL did not start: .*invalid value for parameter "shared_buffers"/s,
  })

  writeFileSync(settings, sound)
  const services = await started(t, dataDir, onlyPostgres)
  t.ok(isAlive(services.pids.postgres!))
})

t.test('a folder too deep for sockets serves all the same', async t => {
  const dataDir = join(await privateDir(t), 'deep-'.repeat(20), 'deeper-'.repeat(20))
  const first = await started(t, dataDir, onlyMongodb)
  const client = new MongoClient(first.mongodbUri)
  t.teardown(() => client.close())
  await client.db().collection('words').insertOne({ word: 'deep' })
  await first.stop()

  const second = await started(t, dataDir, onlyMongodb)
  t.equal(second.mongodbUri, first.mongodbUri)
  t.match(await client.db().collection('words').findOne(), { word: 'deep' })
})

t.test('what is given is not started', async t => {
  const dataDir = join(await privateDir(t), 'data')
  const given = { ...onlyPostgres, ...onlyMongodb }
  const neither = await startServices({ dataDir, log, ...given })
  t.match(neither, given)
  await neither.stop()
  t.notOk(existsSync(dataDir), 'nothing is touched when both are given')

  const one = await started(t, dataDir, onlyMongodb)
  t.match(one, { ...onlyMongodb, pids: { postgres: undefined, mongodb: Number } })
  t.notOk(existsSync(join(dataDir, 'postgres')))
})

const noNeed = !/^2\.([12]\d|3[0-7])$/.test(glibc() ?? '') && 'this system needs no newer C library'
t.test('unavailable: the engine, in one sentence with a way out', { skip: noNeed }, async t => {
  const dir = await privateDir(t)
  const program = `
    import { startServices } from '#scripts/services/services.ts'
    const options = { dataDir: process.argv[1], log() {}, databaseUrl: 'postgresql://elsewhere/a' }
    const { reason, message, hint } = await startServices(options).catch(error => error)
    process.send([reason, message, hint])
  `
  const launcher = spawn(process.execPath, ['--input-type=module', '-e', program, dir], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { PATH: dir, HOME: dir, XDG_CACHE_HOME: join(dir, 'cache') },
  })
  const [[reason, message, hint]] = (await once(launcher, 'message')) as [string[]]
  t.equal(reason, 'unavailable')
  t.match(message, /^The embedded MongoDB engine cannot run here: it needs glibc 2\.38, .*\.$/)
  t.equal(hint, 'Set MONGODB_URI to a MongoDB server.')
})

function glibc(): string | undefined {
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } }
  return header.glibcVersionRuntime
}
