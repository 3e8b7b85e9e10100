import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { createTestClient, startTestApi } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'

const run = promisify(execFile)
const backend = await createTestBackend(t)
const api = await startTestApi(t, backend)

const env = {
  ...process.env,
  DATABASE_URL: backend.config.databaseUrl,
  MONGODB_URI: backend.config.mongodbUri,
  MASTER_KEY: backend.config.masterKeys[0]!.key.toString('hex'),
  KEY_PEPPER: backend.config.keyPepper,
}
const script = (...args: string[]) =>
  run(process.execPath, ['scripts/create-account.ts', ...args], { env })

t.test('an account, a key and an admin credential, as JSON', async t => {
  const { stdout } = await script('--email', 'Ada@Example.com', '--name', 'Laptop', '--json')
  const made = JSON.parse(stdout)
  t.match(made, { email: 'ada@example.com', memory_key: /^mk_/, admin_key: /^mk_admin_/ })
  t.equal((await createTestClient(api.base, made.memory_key).get('/v1/memory/stats')).status, 200)
})

t.test('a second key of the same email belongs to the same account', async t => {
  const { stdout: one } = await script('--email', 'b@example.com', '--json')
  const { stdout: two } = await script('--email', 'b@example.com', '--no-admin', '--json')
  t.equal('admin_key' in JSON.parse(two), false)
  const client = createTestClient(api.base, JSON.parse(two).memory_key)
  t.equal((await client.get(`/v1/memory/${JSON.parse(one).memory_key}/stats`)).status, 200)
})

t.test('for people it prints lines; help and faults explain', async t => {
  const { stdout } = await script('--email', 'c@example.com', '--key-days', '30')
  t.match(stdout, /^email +c@example.com\nmemory_key +mk_\w+\nadmin_key +mk_admin_\w+\n$/)
  t.match((await script('--help')).stdout, /Usage:[\s\S]*--json/)
  const fault = async (...args: string[]): Promise<unknown> =>
    script(...args).then(
      () => 'accepted',
      (error: { code: number; stderr: string }) => ({ code: error.code, said: error.stderr }),
    )
  t.match(await fault('--email', 'nonsense', '--balance=-1'), {
    code: 2,
    said: /--email must be an email[\s\S]*--balance must be/,
  })
  t.match(await fault('--emial', 'a@b.c'), { code: 2, said: /--emial[\s\S]*--help/ })
})

t.test('an existing account refuses a card and a balance, which it would not get', async t => {
  await script('--email', 'old@example.com', '--balance', '5')
  const again = (...args: string[]): Promise<unknown> =>
    script('--email', 'Old@example.com', ...args).then(
      () => 'accepted',
      ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => {
        t.equal(stdout, '', 'no key is made')
        return { code, said: stderr }
      },
    )
  t.match(await again('--balance', '5000'), { code: 2, said: /scripts\/account-billing\.ts/ })
  t.match(await again('--payment-method', 'visa'), { code: 2, said: /new accounts only/ })
})
