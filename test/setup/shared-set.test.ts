import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { isAlive } from '#scripts/services/process.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

const execute = promisify(execFile)

/** A temporary folder, and so a separate set of services. */
async function isolatedSet(t: Test) {
  const TMPDIR = await mkdtemp(join(tmpdir(), 'vault-set-'))
  t.teardown(() => rm(TMPDIR, { recursive: true, force: true }))
  const { NODE_OPTIONS: _o, DATABASE_URL: _d, MONGODB_URI: _m, ...env } = process.env
  return { TMPDIR, env: { ...env, TMPDIR } }
}

/** A test file that imports the environment. */
const program = `
  await import('#test/setup/env.ts')
  process.stdout.write(process.env.DATABASE_URL + ' ' + process.env.MONGODB_URI)
`
const flags = ['--input-type=module', '-e']

const isRemoved = (TMPDIR: string): boolean =>
  globSync(join(TMPDIR, 'memory-vault-test-*')).length === 0

t.test(
  'processes that start at once share one set, which ends with the run that holds it',
  async t => {
    const { TMPDIR, env } = await isolatedSet(t)
    const holder = `
    import { once } from 'node:events'
    import { requestServices } from '#test/setup/shared-services.ts'
    const { connection } = await requestServices({ lingers: false })
    process.send('held')
    await once(process, 'message')
    process.disconnect()
    connection.end()
    await once(connection, 'close')
  `
    const run = spawn(process.execPath, [...flags, holder], {
      env,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    await once(run, 'message')
    const seen = await Promise.all(
      [1, 2, 3].map(() => execute(process.execPath, [...flags, program], { env })),
    )
    t.equal(new Set(seen.map(({ stdout }) => stdout)).size, 1)
    t.match(seen[0]!.stdout, /^postgresql:\/\/.* mongodb:\/\/\S+$/)

    const [set] = globSync(join(TMPDIR, 'memory-vault-test-*'))
    const postmaster = readFileSync(join(set!, 'data/postgres/data/postmaster.pid'), 'utf8')
    run.send('end')
    await once(run, 'exit')
    t.notOk(existsSync(set!), 'the set is removed when the run returns')
    t.notOk(isAlive(Number.parseInt(postmaster)), 'PostgreSQL too')
  },
)

t.test('a set whose run is killed ends by itself', async t => {
  const { TMPDIR, env } = await isolatedSet(t)
  const runner = `
    import { requestServices } from '#test/setup/shared-services.ts'
    await requestServices({ lingers: false })
    process.send('held')
    setInterval(() => {}, 1000)
  `
  const child = spawn(process.execPath, [...flags, runner], {
    env,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  await once(child, 'message')
  t.notOk(isRemoved(TMPDIR))
  child.kill('SIGKILL')
  await waitUntil('the set is removed', () => isRemoved(TMPDIR))
  t.ok(isRemoved(TMPDIR))
})

t.test('addresses from outside are left as they are, and nothing is started', async t => {
  const { TMPDIR, env } = await isolatedSet(t)
  const given = { DATABASE_URL: 'postgresql://elsewhere/a', MONGODB_URI: 'mongodb://elsewhere/b' }
  const options = { env: { ...env, ...given } }
  const { stdout } = await execute(process.execPath, [...flags, program], options)
  t.equal(stdout, `${given.DATABASE_URL} ${given.MONGODB_URI}`)
  t.ok(isRemoved(TMPDIR))
})
