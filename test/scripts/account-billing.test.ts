import t from 'tap'
import { verifyAccountEvents } from '#shared/events/account-event-chain.ts'
import { buildKey, createTestClient, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { accountIdOf } from '#test/support/checks/observe.ts'
import { processEnvironment } from '#test/support/start/processes.ts'
import { runScript } from '#test/support/start/run-script.ts'

const backend = await createTestBackend(t)
const { base } = await startTestApi(t, backend)
const email = 'payer@example.com'
const client = createTestClient(base, await buildKey(backend, email))

const script = (...args: string[]) =>
  runScript('scripts/account-billing.ts', args, processEnvironment(backend.config))
const change = async (...args: string[]): Promise<unknown> =>
  JSON.parse((await script('--email', email, '--json', ...args)).out)

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
  t.match((await script('--email', email, '--payment-method', 'visa 1234')).out, /visa 1234\n/)
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
  t.match((await script('--help')).out, /Usage:[\s\S]*--add-balance/)
  t.match(await script('--email', 'nonsense', '--balance=-1', '--add-balance', '5'), {
    code: 2,
    err: /--email must[\s\S]*exclude each other[\s\S]*--balance must be/,
  })
  t.match(await script('--email', email), { code: 2, err: /Nothing to change/ })
  t.match(await script('--email', email, '--blance', '5'), { code: 2, err: /--blance/ })
  t.match(await script('--email', 'nobody@example.com', '--balance', '5'), {
    code: 1,
    err: /No account has the email/,
  })
  t.match(await script('--email', email, '--add-balance', '5'), { code: 1, err: /unlimited/ })
})
