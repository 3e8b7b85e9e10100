import t from 'tap'
import { verifyAccountEvents } from '#shared/events/account-event-chain.ts'
import { operatorEmail } from '#shared/access/admin.ts'
import { verifyExportFile } from '#shared/accounts/verify-export-file.ts'
import { buildAdmin } from '#test/support/start/admin.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { accountIdOf } from '#test/support/checks/observe.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t, { jobs: [] })
const { key: operatorKey } = await buildAdmin(backend, operatorEmail(backend.config))
const operator = createTestClient(base, operatorKey)

async function newTenant() {
  const { email, key, memoryKey } = await buildAdmin(backend)
  const account = await accountIdOf(backend, email)
  const path = `/v1/operator/tenants/${account}`
  const change = (body: unknown, headers = {}) => operator.send('PATCH', path, { body, headers })
  return { account, path, change, client: createTestClient(base, memoryKey), adminKey: key }
}

const search = { query: 'anything', limit: 1 }
/** No worker is there to wait for. */
const line = {
  headers: { 'content-type': 'application/x-ndjson', prefer: 'respond-async' },
  body: '{"content":"a line"}',
}

t.test('400, 409: changes that say nothing, or two things', async t => {
  const { change } = await newTenant()
  for (const body of [{}, { balance: 5, add_balance: 5 }]) {
    t.equal((await change(body)).status, 400, JSON.stringify(body))
  }
  t.match(await change({ add_balance: 5 }), { status: 409, body: { error: /unlimited/ } })
  await change({ balance: 1e15 })
  t.match(await change({ add_balance: 1 }), { status: 400, body: { error: /more than/ } })
})

t.test('200: a used-up balance is lifted, and a card put on file', async t => {
  const { change, client } = await newTenant()
  t.match(await change({ balance: 0 }), { status: 200, body: { balance: 0 } })
  t.match(await client.post('/v1/memory/search', search), {
    status: 402,
    body: { hint: /ask the operator/ },
  })
  t.match(await change({ add_balance: 100_000 }), { status: 200, body: { balance: 100_000 } })
  t.equal((await client.post('/v1/memory/search', search)).status, 200)
  t.match(await change({ balance: null }), { body: { balance: null, payment_method: true } })

  const upload = () => client.send('POST', '/v1/memory/upload', line)
  t.match(await change({ payment_method: null }), { body: { payment_method: false } })
  t.match(await upload(), { status: 402, body: { hint: /page Tenants/ } })
  t.match(await change({ payment_method: 'visa' }), { body: { payment_method: true } })
  t.equal((await upload()).status, 202)
})

t.test('200: an addition sent twice with one key is made once', async t => {
  const { change } = await newTenant()
  await change({ balance: 10 })
  const key = { 'idempotency-key': crypto.randomUUID() }
  t.match(await change({ add_balance: 5 }, key), { status: 200, body: { balance: 15 } })
  t.match(await change({ add_balance: 5 }, key), { status: 200, body: { balance: 15 } })
  t.match(await change({ add_balance: 5 }), { body: { balance: 20 } })
})

t.test('200: additions at the same time all count', async t => {
  const { change } = await newTenant()
  await change({ balance: 1 })
  await Promise.all(Array.from({ length: 8 }, () => change({ add_balance: 2 })))
  t.match(await change({ add_balance: 3 }), { body: { balance: 20 } })
})

t.test('each change is an event with both values, in the chain and in the export', async t => {
  const { account, change, client } = await newTenant()
  await change({ payment_method: 'visa "x"', balance: 7 })
  await change({ payment_method: 'visa "x"', balance: 7 })
  await change({ payment_method: null, add_balance: 1 })
  t.match(await change({ users_max: 1 }), { status: 200, body: { users: 0, users_max: 1 } })
  const { body } = await client.get('/v1/account/events')
  const actor = operatorEmail(backend.config)
  t.match(body.items.filter(({ after }: { after?: unknown }) => after !== undefined).toReversed(), [
    { action: 'payment_method.changed', actor, before: 'card', after: 'visa "x"' },
    { action: 'balance.changed', actor, before: null, after: 7 },
    { action: 'payment_method.changed', actor, before: 'visa "x"', after: null },
    { action: 'balance.changed', actor, before: 7, after: 8 },
    { action: 'users_max.changed', actor, before: null, after: 1 },
  ])
  const verified = await verifyAccountEvents(backend.postgres.query, account)
  t.match(verified, { position: body.items.length, broken: null })

  const { body: lines } = await client.get('/v1/account/export')
  const file = (edit: (text: string) => string) =>
    verifyExportFile(
      (async function* () {
        for (const line of lines as object[]) yield edit(JSON.stringify(line))
      })(),
    )
  t.match(await file(text => text), { fault: null, chains: [{ broken: null }] })
  const forged = await file(text => text.replace('"before":7,"after":8', '"before":7,"after":9'))
  t.match(forged.chains, [{ broken: { fault: 'changed' } }])
})
