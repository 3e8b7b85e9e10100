import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createTestClient } from '#test/support/api.ts'
import {
  environmentWithoutDatabases,
  ingestText,
  startService,
  type StartedService,
} from '#test/support/npm-start.ts'
import { waitUntil } from '#test/support/wait-until.ts'

/** What opens the service that a later start finds, and that it says so. */
async function opensLater(t: Test, dataDir: string): Promise<StartedService> {
  const later = await startService(t, dataDir)
  const { memory_key, admin_key } = later.credentials
  t.match(later.output(), `Memory Key  ${memory_key}`, 'the keys are printed')
  t.match(later.output(), `Admin key   ${admin_key}`)
  t.notMatch(later.output(), '<your Memory Key>')
  t.equal((await ingestText(later.client, 'The oven was mended')).status, 200)
  const admin = createTestClient(later.credentials.base_url, admin_key)
  t.equal((await admin.get('/v1/orgs')).status, 200)
  return later
}

t.test('a first start that fails loses no keys: the port is taken', async t => {
  const dataDir = mkdtempSync(join(tmpdir(), 'vault-first-'))
  t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => other.close())
  const { port } = other.address() as AddressInfo
  await t.rejects(startService(t, dataDir, { PORT: String(port) }), { message: /PORT/ })
  t.equal(statSync(join(dataDir, 'credentials.json')).mode & 0o777, 0o600)

  const later = await opensLater(t, dataDir)
  later.child.kill('SIGTERM')
  t.equal(await later.exit, 0, later.output())
})

/** Kills a first start as soon as there are keys. @returns its folder, and the keys as they were then. */
async function killedWithKeys(t: Test): Promise<{ dataDir: string; keys: string }> {
  const dataDir = mkdtempSync(join(tmpdir(), 'vault-first-'))
  t.teardown(() => rmSync(dataDir, { recursive: true, force: true }))
  const killed = spawn(process.execPath, ['scripts/start.ts'], {
    env: { ...environmentWithoutDatabases, DATA_DIR: dataDir, PORT: '0' },
    stdio: 'ignore',
  })
  const exited = once(killed, 'exit')
  const file = join(dataDir, 'credentials.json')
  await waitUntil('there are keys', () => existsSync(file))
  killed.kill('SIGKILL')
  await exited
  return { dataDir, keys: readFileSync(file, 'utf8') }
}

t.test('nor does one that is killed as soon as there are keys', async t => {
  let first = await killedWithKeys(t)
  // On a busy machine it may be ready before it is killed: then another one is.
  for (let again = 0; again < 4 && first.keys.includes('base_url'); again++) {
    first = await killedWithKeys(t)
  }
  t.notMatch(first.keys, 'base_url', 'it was not ready yet')
  const later = await opensLater(t, first.dataDir)
  later.child.kill('SIGTERM')
  t.equal(await later.exit, 0, later.output())
})
