import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { jobNames } from '#shared/domain/jobs.ts'
import { buildKey, createTestClient, startTestApi } from '#test/support/start/api.ts'
import {
  createTestBackend,
  createTestConfig,
  createEmptyDatabase,
} from '#test/support/start/backend.ts'
import { processEnvironment, launchProcess, startProcess } from '#test/support/start/processes.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

const config = await createTestConfig(t)
const backend = await createTestBackend(t, { config })
const env = processEnvironment(config)

/** `web: node api/index.ts` and so on, by name. */
const procfile = new Map(
  readFileSync(new URL('../../Procfile', import.meta.url), 'utf8')
    .trim()
    .split('\n')
    .map(line => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon), line.slice(colon + 1).trim()] as const
    }),
)

const said = (content: string) => ({ messages: [{ role: 'user', content }] })

t.test('every process of the Procfile runs by itself against the same two stores', async t => {
  t.ok(['web', 'worker', 'release'].every(name => procfile.has(name)))
  const released = launchProcess(t, procfile.get('release')!, env)
  t.same(await released.exited, { code: 0, signal: null }, released.output())

  const names = [...procfile.keys()].filter(name => name !== 'release')
  const running = await Promise.all(names.map(name => startProcess(t, procfile.get(name)!, env)))
  const client = createTestClient(running[0]!.base, await buildKey(backend))
  const stored = await client.post(
    '/v1/memory/ingest?wait=true',
    said('The kettle is descaled in May'),
  )
  t.equal(stored.status, 200, 'what web promises a worker does')
  const found = await client.post('/v1/memory/search', { query: 'kettle', limit: 3 })
  t.match(found.body.memories, [{ content: 'The kettle is descaled in May' }])

  for (const process of running) process.kill('SIGTERM')
  for (const [index, process] of running.entries()) {
    t.same(
      await process.exited,
      { code: 0, signal: null },
      `${names[index]} ends well: ${process.output()}`,
    )
    t.match(process.output(), /process\.stopped/)
  }
})

t.test('the workers of the Procfile take every queue there is', async t => {
  const taken = [...procfile.values()]
    .filter(command => command.includes('workers/index.ts'))
    .flatMap(command => {
      const names = command.split('workers/index.ts')[1]!.trim().split(/\s+/).filter(Boolean)
      return names.length > 0 ? names : jobNames
    })
  t.same([...new Set(taken)].sort(), [...jobNames].sort())
})

t.test('two web processes and two workers see each other’s writes at once', async t => {
  const [one, other] = await Promise.all([
    ...[1, 2].map(() => startProcess(t, 'node api/index.ts', env)),
    ...[1, 2].map(() => startProcess(t, 'node workers/index.ts', env)),
  ])
  const key = await buildKey(backend)
  const clients = [createTestClient(one!.base, key), createTestClient(other!.base, key)]

  const missed: string[] = []
  for (let turn = 0; turn < 30; turn++) {
    const writer = clients[turn % 2]!
    const reader = clients[(turn + 1) % 2]!
    const word = `word${turn}x${turn * 7919}`
    const stored = await writer.post(
      '/v1/memory/ingest?wait=true',
      said(`The password of door ${turn} is ${word}`),
    )
    t.equal(stored.status, 200)
    const { body } = await reader.post('/v1/memory/search', { query: word, limit: 1 })
    if (!body.memories[0]?.content.includes(word)) missed.push(word)
  }
  t.same(missed, [], 'the other process found each at its next request')

  const promises = Array.from({ length: 60 }, (_, n) =>
    clients[n % 2]!.post('/v1/memory/ingest', said(`item ${n}`)),
  )
  t.ok((await Promise.all(promises)).every(({ status }) => status === 202))
  for (const client of clients) {
    const count = async (): Promise<number> => (await client.get('/v1/memory/stats')).body.memories
    await waitUntil('all are stored', async () => (await count()) >= 90)
    t.equal(await count(), 90, 'each once')
  }
})

t.test('a worker takes only the queues it is given', async t => {
  const others = jobNames.filter(name => name !== 'ingest')
  const { base } = await startTestApi(t, backend)
  const client = createTestClient(base, await buildKey(backend))
  const stored = async (): Promise<number> => (await client.get('/v1/memory/stats')).body.memories
  await client.post('/v1/memory/ingest', said('nobody takes this'))
  await startProcess(t, `node workers/index.ts ${others.join(' ')}`, env)
  const cleared = createTestClient(base, await buildKey(backend))
  t.equal((await cleared.send('DELETE', '/v1/memory')).status, 200, 'it takes its own')
  t.equal(await stored(), 0, 'an exchange waits for a worker of its kind')
  await startProcess(t, 'node workers/index.ts ingest', env)
  await waitUntil('its worker has come', async () => (await stored()) === 1)
})

t.test('a worker with a queue that does not exist says so and ends with 2', async t => {
  const worker = launchProcess(t, 'node workers/index.ts ingest no-such-queue', env)
  t.same(await worker.exited, { code: 2, signal: null }, worker.output())
  t.match(worker.output(), /No such job: no-such-queue/)
  t.match(worker.output(), new RegExp(`Jobs: .*${jobNames[0]}`), 'and names those that do')
  t.notMatch(worker.output(), /\n\s+at /, 'without a stack')
})

t.test('--help is answered by every program, without any environment', async t => {
  const bare = { PATH: env.PATH! }
  for (const command of [
    'node workers/index.ts',
    'node scripts/migrate.ts',
    'node scripts/create-account.ts',
  ]) {
    const { exited, output } = launchProcess(t, `${command} --help`, bare)
    t.same(await exited, { code: 0, signal: null }, `${command}: ${output()}`)
    t.match(output(), /Usage: n/)
  }
})

t.test('the release step runs any number of times, and at the same time', async t => {
  const fresh = await createTestConfig(t)
  const again = launchProcess(t, 'node scripts/migrate.ts', processEnvironment(fresh))
  t.same(await again.exited, { code: 0, signal: null }, again.output())
  t.match(again.output(), /Migrations applied: none/, 'nothing is applied twice')

  const databaseUrl = await createEmptyDatabase(t, await createTestBackend(t, { config: fresh }))
  const at = processEnvironment({ ...fresh, databaseUrl })
  const racers = [1, 2].map(() => launchProcess(t, 'node scripts/migrate.ts', at))
  for (const racer of racers) t.same(await racer.exited, { code: 0, signal: null }, racer.output())
  const applied = racers.flatMap(
    ({ output }) => /applied: (\d.*)/.exec(output())?.[1]?.split(', ') ?? [],
  )
  t.ok(applied.length > 0)
  t.equal(new Set(applied).size, applied.length, 'each file once, whoever was first')
})

/** Commands that end at once and say why, in sentences. */
async function checkRefused(
  t: Test,
  what: string,
  env: Record<string, string>,
  { commands, says, codes = [1] }: { commands: string[]; says: RegExp[]; codes?: number[] },
): Promise<void> {
  const launch = async (command: string): Promise<void> => {
    const { exited, output } = launchProcess(t, `node ${command}`, env)
    t.ok(codes.includes((await exited).code!), `${command}, ${what}: ${output()}`)
    for (const said of says) t.match(output(), said)
    t.notMatch(output(), /secret-password|\n\s+at /)
  }
  await Promise.all(commands.map(launch))
}

t.test('what is wrong with the environment is said at once, in sentences', async t => {
  const broken = { ...env, PORT: 'eighty', MASTER_KEY: 'short', DATABASE_URL: 'mysql://x' }
  await checkRefused(t, 'with three faults', broken, {
    commands: ['api/index.ts', 'workers/index.ts', 'scripts/migrate.ts'],
    codes: [1, 2],
    says: [
      /PORT must be a whole number/,
      /MASTER_KEY must be 32 bytes/,
      /DATABASE_URL must be a URL/,
    ],
  })
  const at = (changes: object) => Object.assign(new URL(config.databaseUrl), changes).href
  for (const [what, DATABASE_URL, said] of [
    [
      'away',
      'postgresql://u:secret-password@127.0.0.1:1/x',
      /PostgreSQL at 127.0.0.1:1 is out of reach: .*REFUSED.*\nCheck DATABASE_URL/,
    ],
    ['not there', at({ pathname: '/not_there' }), /DATABASE_URL/],
    ['of nobody', at({ username: 'nobody', password: 'secret-password' }), /nobody.*DATABASE_URL/],
  ] as const) {
    const commands = ['api/index.ts', 'scripts/migrate.ts']
    await checkRefused(t, what, { ...env, DATABASE_URL }, { commands, says: [said] })
  }
})

t.test('before the release step a process says so', async t => {
  const fresh = await createTestConfig(t)
  const backend = await createTestBackend(t, { config: fresh })
  const empty = await createEmptyDatabase(t, backend)
  await backend.postgres.query('drop schema pgboss cascade')
  for (const [what, databaseUrl] of [
    ['empty', empty],
    ['without a queue', fresh.databaseUrl],
  ] as const) {
    await checkRefused(t, what, processEnvironment({ ...fresh, databaseUrl }), {
      commands: ['api/index.ts', 'workers/index.ts'],
      says: [/npm run migrate/],
    })
  }
})
