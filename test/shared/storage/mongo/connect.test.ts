import '#test/setup/env.ts'
import timers from 'node:timers'
import { MongoWriteConcernError } from 'mongodb'
import t, { type Test } from 'tap'
import { ConfigError } from '#shared/core/config.ts'
import { Refusal } from '#shared/core/errors.ts'
import { openMongo } from '#shared/storage/mongo/connect.ts'
import { MemoryStore, type NewMemory } from '#shared/vault/base/memories.mongo.ts'
import {
  electionErrors,
  mongos,
  serverError,
  standalone,
  startMongoDouble,
  type CommandOutcome,
} from '#test/support/doubles/mongo-double.ts'

const open = async (t: Test, uri: string) => {
  const mongo = await openMongo(uri)
  t.teardown(() => mongo.close())
  return mongo
}

const memory = (text: string): NewMemory => ({
  id: crypto.randomUUID(),
  vault: 'v',
  epoch: 0,
  session: null,
  sessionEpoch: 0,
  tier: 1,
  role: 'user',
  text,
  at: 0,
  tokens: 1,
  operation: 'o',
  vector: new Float32Array([1]),
})

t.test('the database is that of the URI, with several hosts too, else vault', async t => {
  const double = await startMongoDouble(t)
  const host = `127.0.0.1:${double.port}`
  // Nothing listens at the second host: it is one member of the set that is down.
  const several = `mongodb://${host},127.0.0.1:1`
  double.hello = { ...double.hello, hosts: [host, '127.0.0.1:1'] }
  for (const [path, name] of [
    ['/mine?replicaSet=rs', 'mine'],
    ['/test?replicaSet=rs', 'test'],
    ['/?replicaSet=rs', 'vault'],
    ['?replicaSet=rs', 'vault'],
    ['/my%2Ddata?replicaSet=rs', 'my-data'],
  ] as const)
    t.equal((await open(t, several + path)).memories.dbName, name, path)
})

t.test('a string that cannot work names its variable, and no part of a password', async t => {
  for (const uri of [
    'mongodb://',
    'mongodb://a:b',
    'mongodb://h:99999/vault',
    'mongodb://h/%zz',
    'mongodb://h/?tls=perhaps',
    'mongodb://h1,h2/?directConnection=true',
    'mongodb+srv://cluster.example.com:27017/vault',
    'mongodb+srv://localhost/vault',
    'mongodb://user:se@cret@h:1/vault',
  ]) {
    const error = await openMongo(uri).then(
      () => undefined,
      (reason: unknown) => reason,
    )
    t.type(error, ConfigError, uri)
    t.match((error as Error).message, /MONGODB_URI cannot be used: ./)
    t.notMatch((error as Error).message, /cret/)
  }
  const double = await startMongoDouble(t, { hello: standalone })
  const login = { ...serverError(18, 'AuthenticationFailed'), errmsg: 'Authentication failed.' }
  double.rule = name => (name.startsWith('sasl') ? login : undefined)
  await t.rejects(openMongo(double.url.replace('//', '//u:p@')), {
    name: 'ConfigError',
    message: /MONGODB_URI .*Authentication failed/,
  })
})

t.test('deadlines of the URI come before those of the service', async t => {
  const { setTimeout } = timers
  // The driver takes its timers from this module at each use. A hundred times as fast, each refuses at once.
  const waits = t.capture(timers, 'setTimeout', (work: () => void, ms = 0) =>
    setTimeout(work, ms / 100),
  )
  for (const [options, deadlineMs] of [
    ['?serverSelectionTimeoutMS=4000', 4_000],
    ['', 2_000],
    ['?connectTimeoutMS=500&serverselectiontimeoutms=100', 100],
  ] as const) {
    waits()
    await t.rejects(openMongo(`mongodb://127.0.0.1:1/${options}`), {
      name: 'Refusal',
      reason: 'unavailable',
    })
    const asked = new Set(waits().map(({ args }) => args[1]))
    const deadlines = [4_000, 2_000, 100].filter(ms => asked.has(ms))
    t.same(deadlines, [deadlineMs], options)
  }
})

t.test('an idle process seldom looks after its connections, unless the URI says so', async t => {
  // The driver takes its timers from this module at each use, the double and the sockets do not.
  const waits = t.capture(timers, 'setTimeout', timers.setTimeout)
  for (const [options, checkMs] of [
    ['', 10_000],
    ['&minPoolSize=2', 100],
    ['&maxIdleTimeMS=60000', 100],
  ] as const) {
    const double = await startMongoDouble(t)
    waits()
    await (await open(t, `${double.url}?retryWrites=true${options}`)).ping()
    const checks = waits().filter(({ args: [work] }) => /ensureMinPoolSize/.test(String(work)))
    t.ok(checks.length > 0, `the pool is looked after: ${options}`)
    t.same(new Set(checks.map(({ args }) => args[1])), new Set([checkMs]), options)
  }
})

t.test('writes wait for the majority and the journal on all but a standalone', async t => {
  const members = (count: number) => Array.from({ length: count }, (_, n) => `127.0.0.1:${n + 1}`)
  const set = (count: number) => ({ setName: 'rs', hosts: members(count) })
  const cases: [string, object, string, object][] = [
    ['standalone', standalone, '', { w: 1, j: true }],
    ['standalone that is asked for a majority', standalone, 'w=majority', { w: 1, j: true }],
    ['mongos', mongos, '', { w: 'majority', j: true }],
    ['mongos, weaker', mongos, 'w=1&journal=false', { w: 'majority', j: true }],
    ['mongos, majority', mongos, 'w=majority', { w: 'majority', j: true }],
    ['mongos, more than any majority', mongos, 'w=5', { w: 5, j: true }],
    ['mongos, perhaps less', mongos, 'w=3', { w: 'majority', j: true }],
    ['set', set(3), '', { w: 'majority', j: true }],
    ['set, none', set(3), 'w=0', { w: 'majority', j: true }],
    ['set, all', set(3), 'w=3&wtimeoutMS=9000', { w: 3, j: true, wtimeout: 9000 }],
    ['set, a minority', set(5), 'w=2', { w: 'majority', j: true }],
    ['set, tags', set(3), 'w=twoRegions', { w: 'twoRegions', j: true }],
  ]
  for (const [what, hello, options, concern] of cases) {
    const double = await startMongoDouble(t, { hello })
    const mongo = await open(t, `${double.url}?directConnection=true&${options}`)
    await new MemoryStore(mongo).add([memory('one')], 's')
    const insert = double.commands.find(command => command['insert'] === 'memories')
    t.same(insert?.['writeConcern'], concern, what)
  }
})

const refusal = { name: 'Refusal', reason: 'unavailable', message: /out of reach/ }

t.test('an election is out of reach, with its cause, in reads and writes', async t => {
  const scope = { vault: 'v', epoch: 0, revision: 0 }
  const works: ((store: MemoryStore) => Promise<unknown>)[] = [
    store => store.add([memory('one')], 's'),
    store => store.findTakenIds(scope, ['a']),
    store => store.count(scope, { session: null, sessionEpoch: 0 }, 's'),
    store => store.discard(scope, ['a']),
  ]
  const failed = electionErrors.flatMap(answer =>
    works.map(async work => {
      const double = await startMongoDouble(t)
      const store = new MemoryStore(await open(t, double.url))
      double.rule = name => (/^(insert|find|aggregate|delete)$/.test(name) ? answer : undefined)
      const [failure] = await Promise.allSettled([work(store)])
      t.match(failure, { status: 'rejected', reason: refusal }, answer['codeName'])
      t.match(failure, { reason: { cause: { code: answer['code'] } } })
    }),
  )
  // At once: before the driver repeats a command it waits for half a second.
  await Promise.all(failed)
})

t.test('the driver repeats a write that a primary did not finish, once', async t => {
  const double = await startMongoDouble(t)
  const store = new MemoryStore(await open(t, double.url))
  const outcomes: CommandOutcome[] = [electionErrors[0], undefined]
  double.rule = name => (name === 'insert' ? outcomes.shift() : undefined)
  await store.add([memory('one')], 's')
  const inserts = double.commands.filter(command => 'insert' in command)
  t.equal(inserts.length, 2)
  t.equal(inserts[0]!['txnNumber'], inserts[1]!['txnNumber'])
})

t.test('a URI can switch retried writes off, for servers that have none', async t => {
  const double = await startMongoDouble(t)
  const store = new MemoryStore(await open(t, `${double.url}?retryWrites=false`))
  double.rule = name => (name === 'insert' ? electionErrors[0] : undefined)
  await t.rejects(store.add([memory('one')], 's'), refusal)
  t.equal(double.commands.filter(command => 'insert' in command).length, 1)
})

t.test('ids that were taken are no success while the majority has not confirmed', async t => {
  const double = await startMongoDouble(t)
  const store = new MemoryStore(await open(t, double.url))
  const taken = { index: 0, code: 11_000, errmsg: 'E11000 duplicate key' }
  const writeConcernError = { code: 64, codeName: 'WriteConcernTimeout', errmsg: 'waiting' }
  double.rule = name =>
    name === 'insert' ? { ok: 1, n: 0, writeErrors: [taken], writeConcernError } : undefined
  await t.rejects(store.add([memory('one')], 's'), refusal)
  double.rule = name => (name === 'insert' ? { ok: 1, n: 0, writeErrors: [taken] } : undefined)
  await t.resolves(store.add([memory('one')], 's'))
  double.rule = name => (name === 'delete' ? { ok: 1, n: 1, writeConcernError } : undefined)
  const failure = await store
    .discard({ vault: 'v' }, ['a'])
    .then(undefined, (reason: Refusal) => reason)
  t.match(failure, refusal)
  t.type((failure as Refusal).cause, MongoWriteConcernError)
})

t.test('what a server refuses for good is no outage', async t => {
  const double = await startMongoDouble(t)
  const store = new MemoryStore(await open(t, double.url))
  double.rule = name => (name === 'find' ? serverError(13, 'Unauthorized') : undefined)
  await t.rejects(store.findTakenIds({ vault: 'v' }, ['a']), { name: 'MongoServerError', code: 13 })
})
