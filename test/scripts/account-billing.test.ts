import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'
import { verifyAccountEvents } from '#shared/events/account-event-chain.ts'
import { buildKey, createTestClient, startTestApi } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'
import { accountIdOf } from '#test/support/observe.ts'

const run = promisify(execFile)
const backend = await createTestBackend(t)
const { base } = await startTestApi(t, backend)
const email = 'payer@example.com'
const client = createTestClient(base, await buildKey(backend, email))

const env = {
  ...process.env,
  DATABASE_URL: backend.config.databaseUrl,
  MONGODB_URI: backend.config.mongodbUri,
  MASTER_KEY: backend.config.masterKeys[0]!.key.toString('hex'),
  KEY_PEPPER: backend.config.keyPepper,
}
const script = (...args: string[]) =>
  run(process.execPath, ['scripts/account-billing.ts', ...args], { env })
const change = async (...args: string[]): Promise<unknown> =>
  JSON.parse((await script('--email', email, '--json', ...args)).stdout)
const fault = (...args: string[]): Promise<unknown> =>
  script(...args).then(
    () => 'accepted',
    ({ code, stderr }: { code: number; stderr: string }) => ({ code, said: stderr }),
  )

t.test('a 402 is lifted by the script, and comes back when the balance goes', async t => {
  const search = () => client.post('/v1/memory/search', { query: 'anything', limit: 1 })
  t.match(await change('--balance', '0'), { email, balance: 0, payment_method: 'card' })
  t.match(await search(), { status: 402, body: { hint: /operator/ } })
  t.match(await change('--add-balance', '5000'), { balance: 5000 })
  t.equal((await search()).status, 200)
  t.match(await change('--balance', 'unlimited', '--no-payment-method'), {
    balance: null,
    payment_method: null,
  })
  t.equal((await search()).status, 200)
  t.match((await script('--email', email, '--payment-method', 'visa 1234')).stdout, /visa 1234\n/)
  const { body } = await client.get('/v1/account/events?action=balance.changed')
  const known = body.items.map(({ before, after, actor }: Record<string, unknown>) => [
    before,
    after,
    actor,
  ])
  t.match(known.toReversed(), [
    [null, 0, 'service'],
    [0, 5000, 'service'],
    [Number, null, 'service'],
  ])
  const account = await accountIdOf(backend, email)
  t.equal((await verifyAccountEvents(backend.postgres.query, account)).broken, null)
})

t.test('help and faults explain', async t => {
  t.match((await script('--help')).stdout, /Usage:[\s\S]*--add-balance/)
  t.match(await fault('--email', 'nonsense', '--balance=-1', '--add-balance', '5'), {
    code: 2,
    said: /--email must[\s\S]*exclude each other[\s\S]*--balance must be/,
  })
  t.match(await fault('--email', email), { code: 2, said: /Nothing to change/ })
  t.match(await fault('--email', email, '--blance', '5'), { code: 2, said: /--blance/ })
  t.match(await fault('--email', 'nobody@example.com', '--balance', '5'), {
    code: 1,
    said: /No account has the email/,
  })
  t.match(await fault('--email', email, '--add-balance', '5'), { code: 1, said: /unlimited/ })
})
