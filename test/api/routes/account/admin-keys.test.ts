import t from 'tap'
import { operatorEmail } from '#shared/access/admin.ts'
import { buildAdmin } from '#test/support/start/admin.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { isSinceStart } from '#test/support/samples/recent.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t, { jobs: [] })
const path = '/v1/account/admin-keys'
const rosa = await buildAdmin(backend)
const admin = createTestClient(base, rosa.key)
const operator = createTestClient(
  base,
  (await buildAdmin(backend, operatorEmail(backend.config))).key,
)

t.test('201: an admin issues a further credential, which works and is listed masked', async t => {
  const { status, body } = await admin.post(path, { expires_in_days: 7 })
  t.equal(status, 201)
  t.match(body, {
    key: /^mk_admin_/,
    email: rosa.email,
    issued_by: rosa.email,
    revoked_at: null,
    last_used_at: null,
  })
  t.ok(isSinceStart(Date.parse(body.expires_at) - 7 * 86_400_000))
  const other = createTestClient(base, body.key)
  t.equal((await other.get('/v1/orgs')).status, 200)
  const { body: listed } = await other.get(path)
  t.equal(listed.admin_keys.length, 2)
  t.match(listed.admin_keys[0], { id: body.id, last_used_at: String })
  t.ok(isSinceStart(Date.parse(listed.admin_keys[0].last_used_at)))
  t.notMatch(JSON.stringify(listed), body.key)
})

t.test('200: revoked, it stops working on the next request', async t => {
  const { body } = await admin.post(path)
  t.match(await admin.send('DELETE', `${path}/${body.id}`), {
    status: 200,
    body: { deleted: true, id: body.id },
  })
  t.equal((await createTestClient(base, body.key).get('/v1/orgs')).status, 401)
  t.equal((await admin.send('DELETE', `${path}/${body.id}`)).status, 200, 'and stays so')
})

t.test('201: the same Idempotency-Key issues one credential', async t => {
  const headers = { 'idempotency-key': 'once' }
  const first = await admin.post(path, {}, headers)
  t.same((await admin.post(path, {}, headers)).body, first.body)
})

t.test('403: for another email, unless it is the operator who asks', async t => {
  const email = 'Ben@Example.com'
  t.match(await admin.post(path, { email }), { status: 403, body: { hint: /email/ } })
  const { body } = await operator.post(path, { email })
  t.equal(body.email, 'ben@example.com')
  t.match((await createTestClient(base, body.key).post('/v1/orgs', { name: 'Ben' })).body, {
    owner_email: 'ben@example.com',
  })
  const { rows } = await backend.postgres.query(
    "select payment_method from accounts where email = 'ben@example.com'",
  )
  t.strictSame(rows, [{ payment_method: 'self-hosted' }], 'a new account may upload')
  t.ok((await operator.get(path)).body.admin_keys.length > 3, 'the operator sees all')
})
