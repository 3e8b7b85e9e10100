import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { operatorEmail } from '#shared/access/admin.ts'
import { rollUpAccountUsage } from '#shared/billing/usage-sums.postgres.ts'
import { buildAdmin, buildOrg } from '#test/support/start/admin.ts'
import {
  buildKey,
  createTestClient,
  startJobWorkers,
  type TestClient,
} from '#test/support/start/api.ts'
import { readBill } from '#test/support/start/insert-memories.ts'
import {
  insertLaterOperations,
  insertPastUsage,
  removeAccountSums,
  rewindUsageRollUp,
  setOperation,
} from '#test/support/checks/alter-jobs.ts'
import { accountIdOf, countRows } from '#test/support/checks/observe.ts'
import { passMidnight } from '#test/support/checks/wait-until.ts'
import { readPages, startService } from '#test/support/start/start-service.ts'

await passMidnight()
const { backend, base, newClient } = await startService(t, { jobs: [] })
const { key: operatorKey } = await buildAdmin(backend, operatorEmail(backend.config))
const operator = createTestClient(base, operatorKey)
const { query } = backend.postgres

const paths = ['tenants', 'usage', 'operations'].map(name => `/v1/operator/${name}`)
const tell = async (client: TestClient, content: string): Promise<string> => {
  const messages = [{ role: 'user', content }]
  const { body } = await client.post('/v1/memory/ingest', { messages })
  await readBill(backend, body.operation_id)
  return body.operation_id
}
const accountOf = async (email: string): Promise<string> => accountIdOf(backend, email)

t.test('403: whoever does not run the service', async t => {
  const { key } = await buildAdmin(backend)
  for (const path of paths) {
    const refused = await createTestClient(base, key).get(path)
    t.equal(refused.status, 403, path)
    t.equal(refused.headers.get('www-authenticate'), null, 'no browser asks for a password')
    t.equal((await operator.get(path)).status, 200, path)
  }
})

t.test('200: tenants with what they have and use, newest first', async t => {
  const email = 'Rosa.Tenant@example.com'.toLowerCase()
  const owner = await newClient(email)
  await owner.post('/v1/keys', { name: 'of a user' })
  await tell(owner, 'the secret of the orchard')
  await owner.post('/v1/memory/ingest', { messages: [{ role: 'user', content: 'and another' }] })
  const { body } = await operator.get('/v1/operator/tenants?q=ROSA.tenant')
  t.match(body, { has_more: false, next_cursor: null })
  t.equal(body.items.length, 1)
  const [tenant] = body.items
  t.match(tenant, {
    account_id: await accountOf(email),
    email,
    payment_method: true,
    balance: null,
    keys: 2,
    member_keys: 0,
    vaults: 2,
    organizations: 0,
    pending: 2,
    unconsolidated: 0,
    last_30_days: { requests: 2 },
    last_active: new Date().toISOString().slice(0, 10),
  })
  t.ok(tenant.last_30_days.memory_tokens > 0)
  t.notOk(JSON.stringify(body).includes('orchard'))

  const { email: ofOrg, admin, path } = await buildOrg(backend, base)
  await admin.post(`${path}/keys`, { team_member_id: 'ada' })
  const found = await operator.get(`/v1/operator/tenants?q=${await accountOf(ofOrg)}`)
  t.match(found.body.items, [{ email: ofOrg, organizations: 1, keys: 1, vaults: 4 }])
  t.equal(found.body.items[0].member_keys, 2, 'the one of the organization, and of the member')
  t.match((await operator.get('/v1/operator/tenants')).body.items[0], { email: ofOrg })
  t.same((await operator.get('/v1/operator/tenants?q=%25')).body.items, [], 'no pattern')
})

t.test('200: pages of tenants meet each of them once', async t => {
  const accounts = await countRows(backend, 'accounts')
  const pages = await readPages<{ account_id: string }>(operator, '/v1/operator/tenants?limit=2')
  t.ok(pages.every(({ length }) => length <= 2))
  const seen = pages.flat().map(({ account_id }) => account_id)
  t.equal(seen.length, accounts)
  t.equal(new Set(seen).size, seen.length)
})

t.test('200: usage by day, the same before and after the days are rolled up', async t => {
  const email = 'past@example.com'
  await buildKey(backend, email)
  const account = await accountOf(email)
  await insertPastUsage(backend, account, [1, 1, 5, 40, 500])
  await rewindUsageRollUp(backend, 'usage_accounts_rolled', 600)
  const asked = async () => ({
    usage: (await operator.get('/v1/operator/usage?days=50')).body,
    tenant: (await operator.get('/v1/operator/tenants?q=past@')).body.items[0],
  })
  const before = await asked()
  t.equal(await rollUpAccountUsage(query), 600)
  t.same(await asked(), before)
  t.equal(await rollUpAccountUsage(query), 0)
  t.same(await asked(), before)

  const day = (ago: number) => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10)
  t.match(before.usage, { start: day(49), end: day(0) })
  t.match(before.usage.by_day, [
    { day: day(40), accounts: 1, requests: 1, input_tokens: 1, output_tokens: 2, memory_tokens: 3 },
    { day: day(5), accounts: 1, requests: 1 },
    { day: day(1), accounts: 1, requests: 2, memory_tokens: 6 },
    { day: day(0) },
  ])
  t.ok(before.usage.by_day[3].requests >= 2)
  t.match(before.tenant, { last_30_days: { requests: 3, output_tokens: 6 }, last_active: day(1) })
})

t.test('200: work of all accounts, by state, kind and account', async t => {
  const email = 'worker@example.com'
  const client = await newClient(email)
  const other = await newClient()
  const first = await tell(client, 'the secret of the cellar')
  const failed = await tell(other, 'another')
  const cancelled = await tell(client, 'a third')
  await client.send('DELETE', `/v1/operations/${cancelled}`)
  await setOperation(backend, failed, { state: 'failed' })
  const idsOf = async (asked: string): Promise<string[]> =>
    (await operator.get(`/v1/operator/operations?${asked}`)).body.items.map(
      ({ operation_id }: { operation_id: string }) => operation_id,
    )
  t.same(await idsOf('limit=3'), [cancelled, failed, first])
  t.same(await idsOf('state=failed'), [failed])
  t.same(await idsOf(`state=open&account_id=${await accountOf(email)}`), [first])
  t.same(await idsOf('state=open&limit=2'), [failed, first])
  const errorAfter = async (reason: string) => {
    const outcome = { kind: 'failed', reason, error: 'The words of it', hint: '' }
    await setOperation(backend, failed, { state: 'failed', outcome })
    return (await operator.get('/v1/operator/operations?state=failed')).body.items[0].error
  }
  t.equal(await errorAfter('upstream'), 'The words of it')
  t.equal(await errorAfter('invalid'), null, 'what a tenant sent may be in it')
  t.same(await idsOf('state=cancelled'), [cancelled])
  t.same(await idsOf('kind=upload'), [])
  t.same(await idsOf(`account_id=${await accountOf(email)}`), [cancelled, first])
  t.same(await idsOf(`account_id=${mintId()}`), [])
  const { body } = await operator.get('/v1/operator/operations?limit=1')
  t.match(body.items, [{ email, kind: 'ingest', state: 'cancelled', status: null }])
  t.same(await idsOf(`limit=1&cursor=${body.next_cursor}`), [failed])
  t.equal(
    (await operator.get(`/v1/operator/operations?state=done&cursor=${body.next_cursor}`)).status,
    400,
  )
  t.notOk(JSON.stringify((await operator.get('/v1/operator/operations')).body).includes('cellar'))
})

t.test('200: what is rare is found a page later, and no page looks through everything', async t => {
  const email = 'rare@example.com'
  const client = await newClient(email)
  const rare = await tell(client, 'the rare one')
  await setOperation(backend, rare, { kind: 'rare' })
  await insertLaterOperations(backend, rare, { kind: 'plenty', count: 6_000 })
  const { body: first } = await operator.get('/v1/operator/operations?kind=rare')
  t.match(first, { items: [], has_more: true, next_cursor: String })
  const { body: second } = await operator.get(
    `/v1/operator/operations?kind=rare&cursor=${first.next_cursor}`,
  )
  t.match(second, { items: [{ operation_id: rare }], has_more: false, next_cursor: null })
})

t.test('what an erased account used goes with it', async t => {
  await startJobWorkers(backend)
  const email = 'leaver@example.com'
  const client = await newClient(email)
  const account = await accountOf(email)
  await insertPastUsage(backend, account, [2])
  await rewindUsageRollUp(backend, 'usage_accounts_rolled', 600)
  await rollUpAccountUsage(query)
  await insertPastUsage(backend, account, [3])
  await client.post('/v1/account/erase', { email })
  await rewindUsageRollUp(backend, 'usage_accounts_rolled', 600)
  await removeAccountSums(backend)
  await rollUpAccountUsage(query)
  t.equal(await countRows(backend, { table: 'usage_accounts', account }), 0)
  t.same((await operator.get('/v1/operator/tenants?q=leaver@')).body.items, [])
})
