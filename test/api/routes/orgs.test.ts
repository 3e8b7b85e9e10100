import t from 'tap'
import { buildKey, createTestClient, startTestApi } from '#test/support/start/api.ts'
import { buildAdmin, buildOrg } from '#test/support/start/admin.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { endAdminKeys } from '#test/support/checks/alter.ts'
import {
  countDocuments,
  countRows,
  tablesHolding,
  vaultsOfOrg,
} from '#test/support/checks/observe.ts'
import { countOpenOperations } from '#test/support/checks/observe-jobs.ts'
import { isSinceStart } from '#test/support/samples/recent.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t, {
  env: { ADMIN_SECRET: 'a-secret-that-breaks-the-glass', ADMIN_EMAIL: 'Glass@example.com' },
  jobs: ['ingest', 'clear'],
})
const owner = await buildAdmin(backend)
const admin = createTestClient(base, owner.key)

t.test('201: an organization with the usual models of its provider', async t => {
  const { status, body } = await admin.post('/v1/orgs', {
    name: 'Acme',
    processor_provider: 'google',
  })
  t.equal(status, 201)
  t.match(body, {
    name: 'Acme',
    processor_provider: 'google',
    extract_model: /^gemini/,
    classify_model: /^gemini/,
    owner_email: owner.email,
    org_key: /^mk_org_[0-9A-Za-z]{32}$/,
  })
  t.ok(isSinceStart(body.created_at))

  const { org_key: _, notice, ...settings } = body
  t.match(notice, /no key for google/)
  const { pipeline, ...read } = (await admin.get(`/v1/orgs/${body.org_id}`)).body
  t.match(pipeline, { state: 'running', waiting: 0 })
  t.strictSame(read, settings)
  t.strictSame(
    (await admin.get('/v1/orgs')).body,
    { orgs: [{ ...settings, access: 'admin', notice }] },
    'the key is shown once',
  )
})

t.test('201: the provider that the account has a key for', async t => {
  const { key, memoryKey } = await buildAdmin(backend)
  const put = {
    headers: { authorization: `Bearer ${memoryKey}` },
    body: { key: 'sk-0123456789abcdef' },
  }
  await createTestClient(base).send('PUT', '/v1/account/provider-keys/mistral', put)
  const { body } = await createTestClient(base, key).post('/v1/orgs', { name: 'Keyed' })
  t.match(body, { processor_provider: 'mistral', extract_model: /^mistral/ })
})

t.test('200: PATCH writes only what is there', async t => {
  const { admin, path } = await buildOrg(backend, base)
  const before = (await admin.get(path)).body
  const renamed = await admin.send('PATCH', path, { body: { name: 'Bolt' } })
  t.match(renamed.body, { ...before, name: 'Bolt', updated_at: Number })
  const moved = await admin.send('PATCH', path, {
    body: { processor_provider: 'anthropic', extract_model: 'a', classify_model: 'b' },
  })
  t.match(moved.body, {
    name: 'Bolt',
    processor_provider: 'anthropic',
    extract_model: 'a',
    classify_model: 'b',
  })
  t.strictSame((await admin.get(path)).body, moved.body)
  t.match((await admin.send('PATCH', path, { body: {} })).body, { error: 'Nothing to change' })
})

t.test('409: a name the admin has already, whatever its case; others may have it', async t => {
  const { admin, path } = await buildOrg(backend, base)
  t.equal((await admin.post('/v1/orgs', { name: 'ACME' })).status, 409)
  const other = await admin.post('/v1/orgs', { name: 'Bolt' })
  t.equal((await admin.send('PATCH', path, { body: { name: 'bolt' } })).status, 409)
  t.equal((await admin.send('PATCH', path, { body: { name: 'Acme' } })).status, 200, 'its own')
  t.equal(other.status, 201)
  t.equal((await buildOrg(backend, base)).path.length, path.length)
})

t.test('409: of two creations of one name at once one is made', async t => {
  const { key } = await buildAdmin(backend)
  const racing = createTestClient(base, key)
  const answers = await Promise.all(
    Array.from({ length: 6 }, () => racing.post('/v1/orgs', { name: 'Race' })),
  )
  t.strictSame(answers.map(({ status }) => status).sort(), [201, 409, 409, 409, 409, 409])
  t.equal((await racing.get('/v1/orgs')).body.orgs.length, 1)
})

t.test('every form of credential opens it, and nothing else does', async t => {
  const { email, key, memoryKey } = await buildAdmin(backend)
  const status = async (headers: Record<string, string>) =>
    (await createTestClient(base).get('/v1/orgs', headers)).status
  for (const headers of [
    { authorization: `Bearer ${key}` },
    { authorization: `bearer  ${key}` },
    { 'x-admin-key': key },
    { 'x-dashboard-key': key },
    { authorization: 'Bearer a-secret' },
    { 'x-admin-key': 'a-secret-that-breaks-the-glass' },
  ] as Record<string, string>[]) {
    t.equal(await status(headers), headers.authorization === 'Bearer a-secret' ? 401 : 200)
  }
  for (const headers of [
    {},
    { 'x-admin-email': email },
    { 'x-memory-key': key },
    { 'x-api-key': key },
    { authorization: key },
    { authorization: `Basic ${key}` },
    { authorization: `Bearer ${key}:read` },
    { authorization: `Bearer mk_admin_${'0'.repeat(32)}` },
    { authorization: `Bearer ${memoryKey}`, 'x-admin-key': key },
    { authorization: `Bearer ${await buildKey(backend)}` },
  ] as Record<string, string>[]) {
    t.equal(await status(headers), 401, JSON.stringify(Object.keys(headers)))
  }
})

t.test('the break-glass secret acts for the email of the environment', async t => {
  const glass = createTestClient(base)
  const headers = { 'x-admin-key': 'a-secret-that-breaks-the-glass', 'x-admin-email': owner.email }
  const { body } = await glass.post('/v1/orgs', { name: 'Glass' }, headers)
  t.equal(body.owner_email, 'glass@example.com', 'X-Admin-Email says nothing')
  t.equal((await glass.get('/v1/orgs', headers)).body.orgs.length, 1)
})

t.test('401: expired and revoked credentials, from the next request on', async t => {
  for (const how of ['expires_at', 'revoked_at'] as const) {
    const { email, key } = await buildAdmin(backend)
    const ended = createTestClient(base, key)
    t.equal((await ended.get('/v1/orgs')).status, 200)
    await endAdminKeys(backend, email, how)
    t.match(await ended.get('/v1/orgs'), { status: 401, body: { error: /admin/ } })
  }
})

t.test('the same Idempotency-Key makes one organization', async t => {
  const { key } = await buildAdmin(backend)
  const again = createTestClient(base, key)
  const headers = { 'idempotency-key': 'create' }
  const [one, two] = [
    await again.post('/v1/orgs', { name: 'Once' }, headers),
    await again.post('/v1/orgs', { name: 'Once' }, headers),
  ]
  t.strictSame(two.body, one.body, 'with the key')
  t.equal((await again.post('/v1/orgs', { name: 'Twice' }, headers)).status, 400)
  t.equal((await again.get('/v1/orgs')).body.orgs.length, 1)

  const { org_id: org } = one.body
  const gone = await again.send('DELETE', `/v1/orgs/${org}`, { headers })
  t.strictSame((await again.send('DELETE', `/v1/orgs/${org}`, { headers })).body, gone.body)
  t.equal((await again.send('DELETE', `/v1/orgs/${org}`)).status, 404)
})

t.test('200: DELETE leaves nothing in either store', async t => {
  const { admin, org, path, orgKey } = await buildOrg(backend, base)
  const { body: role } = await admin.post(`${path}/roles`, { name: 'All', allowed_tags: ['*'] })
  await admin.post(`${path}/tags`, { label: 'secret' })
  await admin.send('PUT', `${path}/instructions`, { body: { anti_rules: [{ match: 'x' }] } })
  const { body: key } = await admin.post(`${path}/keys`, { team_member_id: 'ann@example.com' })
  await admin.post(`${path}/role-assignments`, { key_id: key.id, role_ids: [role.role_id] })
  const { body: listed } = await admin.get(`${path}/users`)
  const user = listed.users[0].user_id
  const { body: own } = await admin.post(`${path}/users/${user}/memory-key`)
  const member = createTestClient(base, key.key_id)
  await member.post(
    '/v1/memory/ingest?wait=true',
    { messages: [{ role: 'user', content: 'a canary sings' }] },
    { 'x-session-id': 'canary' },
  )
  const ids = await vaultsOfOrg(backend, org)
  t.equal(ids.length, 2)

  t.match(await admin.send('DELETE', path), { status: 200, body: { deleted: true, id: org } })
  for (const gone of [key.key_id, own.key, orgKey]) {
    t.equal((await createTestClient(base, gone).get('/v1/memory/stats')).status, 401)
  }
  t.equal((await admin.get(path)).status, 404)
  t.strictSame((await admin.get('/v1/orgs')).body, { orgs: [] })

  await waitUntil('the documents are gone', async () => {
    const left = await Promise.all(ids.map(vault => countDocuments(backend, vault)))
    return left.every(count => count === 0)
  })
  await waitUntil('the erasures are done', async () => {
    return (await countOpenOperations(backend, ids)) === 0
  })
  // The account's events name people and ids, never words.
  t.same(await tablesHolding(backend, `canary|${org}/`), [])
  t.same(await tablesHolding(backend, `ann@example|${key.id}`), ['public.account_events'])
  const tables = ['org_roles', 'org_tags', 'org_users', 'org_rules', 'org_instructions']
  for (const table of [...tables, 'memory_keys']) {
    t.equal(await countRows(backend, { table, org }), 0, table)
  }
})

t.test('a second process forgets the vaults of a removed organization too', async t => {
  const second = await createTestBackend(t, { config: backend.config })
  const there = await startTestApi(t, second)
  const { admin, path } = await buildOrg(backend, base)
  const { body: key } = await admin.post(`${path}/keys`, { team_member_id: 'bob' })
  const member = createTestClient(there.base, key.key_id)
  const question = { query: 'hello', limit: 5 }
  await member.post('/v1/memory/ingest?wait=true', {
    messages: [{ role: 'user', content: 'hello' }],
  })
  t.equal((await member.post('/v1/memory/search', question)).status, 200)
  await admin.send('DELETE', path)
  t.equal((await member.post('/v1/memory/search', question)).status, 401)
})
