import t from 'tap'
import { createTestClient, startJobWorkers, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { processEnvironment } from '#test/support/start/processes.ts'
import { runScript } from '#test/support/start/run-script.ts'

const backend = await createTestBackend(t)
const api = await startTestApi(t, backend)
await startJobWorkers(backend)

const script = (...args: string[]) =>
  runScript('scripts/create-account.ts', args, processEnvironment(backend.config))

t.test('an account, a key and an admin credential, as JSON', async t => {
  const { out } = await script('--email', 'Ada@Example.com', '--name', 'Laptop', '--json')
  const made = JSON.parse(out)
  t.match(made, { email: 'ada@example.com', memory_key: /^mk_/, admin_key: /^mk_admin_/ })
  t.equal((await createTestClient(api.base, made.memory_key).get('/v1/memory/stats')).status, 200)
})

t.test('a second key of the same email belongs to the same account', async t => {
  const { out: one } = await script('--email', 'b@example.com', '--json')
  const { out: two } = await script('--email', 'b@example.com', '--no-admin', '--json')
  t.equal('admin_key' in JSON.parse(two), false)
  const client = createTestClient(api.base, JSON.parse(two).memory_key)
  t.equal((await client.get(`/v1/memory/${JSON.parse(one).memory_key}/stats`)).status, 200)
})

t.test('for people it prints lines; help and faults explain', async t => {
  const { out } = await script('--email', 'c@example.com', '--key-days', '30')
  t.match(out, /^email +c@example.com\nmemory_key +mk_\w+\nadmin_key +mk_admin_\w+\n$/)
  t.match((await script('--help')).out, /Usage:[\s\S]*--json/)
  t.match(await script('--email', 'nonsense', '--balance=-1'), {
    code: 2,
    err: /--email must be an email[\s\S]*--balance must be/,
  })
  t.match(await script('--emial', 'a@b.c'), { code: 2, err: /--emial[\s\S]*--help/ })
})

t.test('a new account may upload, unless those who bill say so', async t => {
  const upload = async (...args: string[]) => {
    const { out } = await script('--json', ...args)
    const client = createTestClient(api.base, JSON.parse(out).memory_key)
    return client.post('/v1/memory/upload', '{"content":"a line"}')
  }
  t.equal((await upload('--email', 'own@example.com')).status, 200)
  t.match(await upload('--email', 'billed@example.com', '--billed'), {
    status: 402,
    body: { hint: /account-billing\.ts --email <email> --payment-method/ },
  })
  t.match(await script('--email', 'x@example.com', '--billed', '--payment-method', 'visa'), {
    code: 2,
    err: /exclude each other/,
  })
})

t.test('an existing account refuses a card and a balance, which it would not get', async t => {
  await script('--email', 'old@example.com', '--balance', '5')
  const again = (...args: string[]) => script('--email', 'Old@example.com', ...args)
  t.match(await again('--balance', '5000'), {
    code: 2,
    out: '',
    err: /scripts\/account-billing\.ts/,
  })
  t.match(await again('--payment-method', 'visa'), { code: 2, out: '', err: /new accounts only/ })
})
