import t from 'tap'
import { createTestClient } from '#test/support/start/api.ts'
import { startService } from '#test/support/start/start-service.ts'

/* The secret of the environment stays when the account that it acts for is erased; what it was answered goes. */

const adminSecret = 'break-the-glass-please'
const email = 'root@example.com'
const { backend, base, newClient } = await startService(t, {
  env: { ADMIN_SECRET: adminSecret, ADMIN_EMAIL: 'Root@Example.com' },
  jobs: [],
})
const { query } = backend.postgres
const breakGlass = createTestClient(base, adminSecret)

/** The routes whose responses are stored, in order. */
async function storedRoutes(): Promise<string[]> {
  const { rows } = await query<{ route: string }>(
    'select route from idempotency where answer is not null order by route',
  )
  return rows.map(({ route }) => route)
}

const once = (key: string) => ({ 'idempotency-key': key })

t.test('answers to the secret go with its account', async t => {
  const owner = await newClient(email)
  const created = await breakGlass.post('/v1/orgs', { name: 'Acme' }, once('org'))
  t.equal(created.status, 201, JSON.stringify(created.body))
  const stranger = await newClient('other@example.com')
  t.equal((await stranger.post('/v1/keys', { name: 'Tablet' }, once('mint'))).status, 201)
  t.same(await storedRoutes(), ['POST /v1/keys', 'POST /v1/orgs'])

  t.equal((await owner.post('/v1/account/erase', { email })).status, 202)
  t.same(await storedRoutes(), ['POST /v1/keys'], 'that of the other account')
  const again = await breakGlass.post('/v1/orgs', { name: 'Acme' }, once('org'))
  t.equal(again.status, 201)
  t.not(again.body.org_id, created.body.org_id, 'an organization of the new account')
})

t.test('an erasure by the secret, sent again, is answered with the same receipt', async t => {
  const erase = () => breakGlass.post('/v1/account/erase', { email }, once('erase'))
  const [first, second] = [await erase(), await erase()]
  t.equal(first.status, 202, JSON.stringify(first.body))
  t.same(second.body, first.body)
  t.same(await storedRoutes(), ['POST /v1/account/erase', 'POST /v1/keys'])
})

t.test('the erasure of another account leaves the answers to the secret', async t => {
  const created = await breakGlass.post('/v1/orgs', { name: 'Globex' }, once('globex'))
  t.equal(created.status, 201)
  const other = await newClient('another@example.com')
  t.equal((await other.post('/v1/account/erase', { email: 'another@example.com' })).status, 202)
  const replayed = await breakGlass.post('/v1/orgs', { name: 'Globex' }, once('globex'))
  t.equal(replayed.body.org_id, created.body.org_id)
})
