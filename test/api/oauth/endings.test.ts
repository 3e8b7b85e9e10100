import t from 'tap'
import { dropEndedOAuth } from '#shared/access/oauth-records.postgres.ts'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { ageOAuth } from '#test/support/checks/alter.ts'
import { readRows, tablesHolding, countRows } from '#test/support/checks/observe.ts'
import {
  LoginClient,
  registerClient,
  startOAuthService,
  useTool,
} from '#test/support/start/oauth.ts'

/** What the login leaves in the database, and for how long. */

const { backend, base } = await startOAuthService(t)
const { query } = backend.postgres

const recordsOf = async () => {
  const rows = await readRows<{ model: string; count: number }>(
    backend,
    'select model, count(*)::int from oauth_records group by model',
  )
  return Object.fromEntries(rows.map(({ model, count }) => [model, count]))
}
const countApplications = () => countRows(backend, 'applications')

t.test('no table holds a token, a code, or what a client asked for', async t => {
  const client = new LoginClient(base, await registerClient(base))
  const key = await buildKey(backend)
  const { searchParams } = await client.allow(await client.begin({ state: 'canary-state' }), {
    key,
  })
  const code = searchParams.get('code')!
  const { body } = await client.exchange(code)
  const secrets = [code, body.access_token, body.refresh_token, key, 'canary-state']
  t.same(await tablesHolding(backend, secrets.join('|')), [])
})

t.test('what has ended is swept: records, applications without tokens, unused clients', async t => {
  const key = await buildKey(backend)
  await dropEndedOAuth(query)
  const before = await countApplications()
  const client = new LoginClient(base, await registerClient(base))
  await registerClient(base)
  const { refresh_token: refresh } = await client.login({ key })
  await client.allow(await client.begin(), { key })
  t.equal(await countApplications(), before + 2, 'one whose code was not used yet')
  await ageOAuth(backend, '2 hours')
  await dropEndedOAuth(query)
  t.equal(await countApplications(), before + 1)
  t.notOk((await recordsOf())['Interaction'])
  t.equal((await client.refresh(refresh)).status, 200)
  await ageOAuth(backend, '25 hours')
  await dropEndedOAuth(query)
  t.equal((await new LoginClient(base, client.clientId).authorize()).status, 303, 'it is in use')
  const clients = (await recordsOf())['Client']!
  await ageOAuth(backend, '91 days')
  await dropEndedOAuth(query)
  t.equal(await countApplications(), 0)
  t.equal((await recordsOf())['Client'], clients - 1, 'its client stays a month more')
  await ageOAuth(backend, '31 days')
  await dropEndedOAuth(query)
  t.same(await recordsOf(), {})
})

t.test('an application goes with its key and its account, and stands in the export', async t => {
  const key = await buildKey(backend, 'rosa@example.com')
  const api = createTestClient(base, key)
  const client = new LoginClient(base, await registerClient(base, { client_name: 'Chat app' }))
  const { access_token: token } = await client.login({ key })
  const minted = (await api.post('/v1/keys')).body
  await client.login({ key: minted.key })
  const lines = (await api.get('/v1/account/export')).body as { type: string }[]
  t.match(
    lines.filter(({ type }) => type === 'application'),
    [{ name: 'Chat app' }, { name: 'Chat app', scopes: ['read', 'write', 'delete'] }],
  )
  await api.send('DELETE', `/v1/keys/${minted.id}`)
  await dropEndedOAuth(query)
  t.equal(await countApplications(), 1)
  const erased = await api.post('/v1/account/erase', { email: 'rosa@example.com' })
  t.equal(erased.status, 202)
  t.equal((await useTool(base, token, 'stats')).status, 401)
  t.equal(await countApplications(), 0)
  t.same(Object.keys(await recordsOf()), ['Client'])
})

t.test('an application of a user ends with the key of the user', async t => {
  const key = await buildKey(backend, 'nadia@example.com')
  const api = createTestClient(base, key)
  const minted = (await api.post('/v1/keys', { external_id: 'nadia-1' })).body
  const client = new LoginClient(base, await registerClient(base))
  const { refresh_token: refresh } = await client.login({ key, user: 'nadia-1' })
  t.equal((await client.refresh(refresh)).status, 200)
  await api.send('DELETE', `/v1/keys/${minted.id}`)
  t.match(await client.refresh(refresh), { status: 400, body: { error: 'invalid_grant' } })
})
