import t from 'tap'
import { buildAdmin } from '#test/support/start/admin.ts'
import { buildKey, createTestClient, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'

const secret = 'break-the-glass-please'
const env = { ADMIN_SECRET: secret, ADMIN_EMAIL: 'ops@example.com' }
const backend = await createTestBackend(t, { env })
const { base } = await startTestApi(t, backend)
const statusOf = async (headers: Record<string, string>) =>
  (await createTestClient(base).get('/v1/orgs', headers)).status

t.test('an admin header wins over a bearer token that is none of ours', async t => {
  const { key } = await buildAdmin(backend)
  const jwt = 'Bearer eyJhbGciOiJIUzI1NiJ9.e30.x'
  t.equal(await statusOf({ authorization: jwt, 'x-admin-key': key }), 200)
  t.equal(await statusOf({ authorization: jwt, 'x-dashboard-key': key }), 200)
  t.equal(await statusOf({ authorization: jwt, 'x-admin-key': secret }), 200)
  t.equal(await statusOf({ authorization: jwt }), 401)
})

t.test('one of our keys wins over the admin header', async t => {
  const { key } = await buildAdmin(backend)
  const own = await buildKey(backend)
  for (const bearer of [own, `${own}:read`, `mk_admin_${'0'.repeat(32)}`]) {
    const headers = { authorization: `Bearer ${bearer}`, 'x-admin-key': key }
    t.equal(await statusOf(headers), 401, bearer.slice(0, 9))
  }
  t.equal(await statusOf({ authorization: `Bearer ${secret}`, 'x-admin-key': 'wrong' }), 200)
})
