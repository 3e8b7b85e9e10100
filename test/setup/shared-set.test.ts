import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { isAlive } from '#scripts/services/process.ts'

const run = promisify(execFile)

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

async function isRemoved(TMPDIR: string, withinMs: number): Promise<boolean> {
  const deadline = Date.now() + withinMs
  while (globSync(join(TMPDIR, 'memory-vault-test-*')).length > 0) {
    if (Date.now() > deadline) return false
    await delay(20)
  }
  return true
}

t.test(
  'test files that start at once share one set, which ends after a run of all tests',
  async t => {
    const { TMPDIR, env } = await isolatedSet(t)
    const seen = await Promise.all(
      [1, 2, 3].map(() => run(process.execPath, [...flags, program], { env })),
    )
    t.equal(new Set(seen.map(({ stdout }) => stdout)).size, 1)
    t.match(seen[0]!.stdout, /^postgresql:\/\/.* mongodb:\/\/\S+$/)

    const [set] = globSync(join(TMPDIR, 'memory-vault-test-*'))
    const postmaster = readFileSync(join(set!, 'data/postgres/data/postmaster.pid'), 'utf8')
    await run(process.execPath, ['test/setup/before.ts'], { env })
    await run(process.execPath, ['test/setup/after.ts'], { env })
    t.notOk(existsSync(set!), 'the set is removed when the last program of the run returns')
    t.notOk(isAlive(Number.parseInt(postmaster)), 'PostgreSQL too')
  },
)

t.test('a set reserved for a runner that is killed ends by itself', async t => {
  const { TMPDIR, env } = await isolatedSet(t)
  const runner = `
    import { spawn } from 'node:child_process'
    spawn(process.execPath, ['test/setup/before.ts']).on('exit', () => process.send('held'))
    setInterval(() => {}, 1000)
  `
  const child = spawn(process.execPath, [...flags, runner], {
    env,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  await once(child, 'message')
  await delay(700)
  t.notOk(await isRemoved(TMPDIR, 0), 'it outlives the program that started it')

  child.kill('SIGKILL')
  t.ok(await isRemoved(TMPDIR, 180_000))
})

t.test('addresses from outside are left as they are, and nothing is started', async t => {
  const { TMPDIR, env } = await isolatedSet(t)
  const given = { DATABASE_URL: 'postgresql://elsewhere/a', MONGODB_URI: 'mongodb://elsewhere/b' }
  const options = { env: { ...env, ...given } }
  const { stdout } = await run(process.execPath, [...flags, program], options)
  await run(process.execPath, ['test/setup/before.ts'], options)
  t.equal(stdout, `${given.DATABASE_URL} ${given.MONGODB_URI}`)
  t.ok(await isRemoved(TMPDIR, 0))
})
