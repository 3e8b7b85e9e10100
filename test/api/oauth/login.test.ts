import t from 'tap'
import { ageOAuth } from '#test/support/checks/alter.ts'
import { buildKey, createTestClient, startJobWorkers } from '#test/support/start/api.ts'
import {
  askMcp,
  LoginClient,
  registerClient,
  startOAuthService,
  startSecondProcess,
  useTool,
} from '#test/support/start/oauth.ts'

const { backend, base } = await startOAuthService(t)
await startJobWorkers(backend)
const key = await buildKey(backend)

const connect = async (metadata = {}) => new LoginClient(base, await registerClient(base, metadata))

t.test('the metadata name what a client of MCP looks for', async t => {
  const refused = await fetch(`${base}/mcp`, { method: 'POST', body: '{}' })
  t.equal(refused.status, 401)
  const challenge = refused.headers.get('www-authenticate')!
  t.match(challenge, /^Bearer scope="read write delete", resource_metadata="[^"]+"$/)
  const address = /resource_metadata="([^"]+)"/.exec(challenge)![1]!
  t.match(await (await fetch(address)).json(), {
    resource: `${base}/mcp`,
    authorization_servers: [base],
    scopes_supported: ['read', 'write', 'delete'],
  })
  const response = await fetch(`${base}/.well-known/oauth-authorization-server`)
  t.match(await response.json(), {
    issuer: base,
    authorization_endpoint: `${base}/oauth/authorize`,
    token_endpoint: `${base}/oauth/token`,
    registration_endpoint: `${base}/oauth/register`,
    revocation_endpoint: `${base}/oauth/revoke`,
    code_challenge_methods_supported: ['S256'],
    client_id_metadata_document_supported: true,
    authorization_response_iss_parameter_supported: true,
    token_endpoint_auth_methods_supported: ['none', 'client_secret_basic', 'client_secret_post'],
    response_types_supported: ['code'],
  })
})

t.test('a person lets a client in, and its token opens the vault at /mcp alone', async t => {
  const client = await connect()
  const page = await client.begin()
  const shown = await (await client.browser.open(page)).text()
  t.match(shown, /Test client<\/bdi><\/strong> asks/)
  t.match(shown, /127\.0\.0\.1:7777/)
  const { searchParams } = await client.allow(page, { key })
  t.equal(searchParams.get('state'), 'a state')
  t.equal(searchParams.get('iss'), base)
  const { body: tokens } = await client.exchange(searchParams.get('code')!)
  t.match(tokens, { token_type: 'Bearer', expires_in: 3600, scope: 'read write delete' })
  const { access_token: token } = tokens
  const stored = await useTool(base, token, 'store', { text: 'My boat is called Merganser.' })
  t.match(stored.body.result, { structuredContent: { accepted: true } })
  const found = await useTool(base, token, 'search', { query: 'the name of the boat' })
  t.match(found.body.result.structuredContent.memories, [{ content: /Merganser/ }])
  const direct = createTestClient(base, token)
  t.equal((await direct.get('/v1/memory/stats')).status, 401)
  t.equal((await createTestClient(base, key).get('/v1/memory/stats')).body.memories, 1)
  t.notOk(client.browser.cookieNames().includes('_session'), 'nobody stays signed in')
  const again = await connect()
  t.match(await again.begin(), /sign-in/, 'each authorization asks')
})

t.test('a refresh token is good in 30 seconds, and a later use ends the application', async t => {
  const client = await connect()
  const first = await client.login({ key })
  const { status, body: second } = await client.refresh(first.refresh_token)
  t.equal(status, 200)
  t.equal((await useTool(base, second.access_token, 'stats')).status, 200)
  const narrow = await client.refresh(second.refresh_token, { scope: 'read' })
  t.equal(narrow.body.scope, 'read')
  const [again, atOnce] = await Promise.all([1, 2].map(() => client.refresh(first.refresh_token)))
  t.same([again!.status, atOnce!.status], [200, 200], 'the answer was lost, and two at once')
  const next = await client.refresh(again!.body.refresh_token)
  t.equal(next.status, 200)
  const tokens = [second, narrow.body, again!.body, atOnce!.body, next.body]
  const use = async (): Promise<number[]> => {
    const used = tokens.map(({ access_token: token }) => useTool(base, token, 'stats'))
    return (await Promise.all(used)).map(({ status }) => status)
  }
  t.same(await use(), [200, 200, 200, 200, 200])
  await ageOAuth(backend, '31 seconds')
  t.match(await client.refresh(first.refresh_token), {
    status: 400,
    body: { error: 'invalid_grant' },
  })
  t.same(await use(), [401, 401, 401, 401, 401])
})

t.test('tools beyond the scopes are neither listed nor done', async t => {
  const client = await connect()
  const { access_token: token, scope } = await client.login({ key, scopes: ['read'] })
  t.equal(scope, 'read')
  const { result } = (await askMcp(base, token, { method: 'tools/list' })).body
  const names = result.tools.map(({ name }: { name: string }) => name) as string[]
  t.ok(names.includes('search'))
  t.same(
    names.filter(name => ['store', 'edit', 'delete', 'consolidate_commit'].includes(name)),
    [],
  )
  const refused = await useTool(base, token, 'delete', { ids: [] })
  t.equal(refused.status, 403)
  t.match(refused.challenge, /error="insufficient_scope", scope="read delete", resource_metadata=/)
  t.match((await useTool(base, token, 'store', { text: 'x' })).status, 403)
  const writer = await (await connect()).login({ key, scopes: ['write'] })
  t.match((await useTool(base, writer.access_token, 'search', { query: 'x' })).status, 403)
  t.equal((await useTool(base, writer.access_token, 'delete', { ids: ['x'] })).status, 403)
  const eraser = await (await connect()).login({ key, scopes: ['delete'] })
  const listed = await askMcp(base, eraser.access_token, { method: 'tools/list' })
  t.same(
    listed.body.result.tools.map(({ name }: { name: string }) => name),
    ['stats', 'delete'],
  )
})

t.test('an owner key opens the vault of the user that the person names', async t => {
  const client = await connect()
  const { access_token: token } = await client.login({ key, user: 'ann' })
  await useTool(base, token, 'store', { text: 'Ann likes plums.' })
  const owner = createTestClient(base, key)
  const first = (await owner.get('/v1/applications?limit=1')).body
  t.match(first, { items: [{ external_id: 'ann' }], has_more: true })
  const next = await owner.get(`/v1/applications?limit=1&cursor=${first.next_cursor}`)
  t.match(next.body.items, [{ external_id: null }])
  const ann = await owner.get('/v1/memory/stats', { 'x-memory-user': 'ann' })
  t.equal(ann.body.memories, 1)
  const other = await askMcp(base, token, {
    method: 'tools/list',
    headers: { 'x-memory-user': 'bob' },
  })
  t.match(other, { status: 400, body: { error: /opens one vault/ } })
  const own = await owner.post('/v1/keys', { external_id: 'ann' })
  const page = await client.begin()
  await t.rejects(client.allow(page, { key: own.body.key, user: 'bob' }), /403/)
  const { items } = (await owner.get('/v1/applications')).body
  t.equal(
    items.find((item: { external_id: string }) => item.external_id === 'ann').name,
    'Test client',
  )
  t.match((await createTestClient(base, own.body.key).get('/v1/applications')).body.items, [
    { external_id: 'ann', scopes: ['read', 'write', 'delete'], last_used_at: String },
  ])
  await owner.send('DELETE', `/v1/keys/${own.body.id}?erase=true`)
  t.equal((await useTool(base, token, 'stats')).status, 401, 'an erased vault is closed')
})

t.test('an application is listed and disconnected; its tokens end at once', async t => {
  const mine = await buildKey(backend)
  const api = createTestClient(base, mine)
  const client = await connect({ client_name: 'Chat <b>&' })
  const { access_token: token, refresh_token: refresh } = await client.login({ key: mine })
  const [{ id, ...listed }, ...others] = (await api.get('/v1/applications')).body.items
  t.same(others, [])
  t.match(listed, {
    name: 'Chat <b>&',
    client_id: client.clientId,
    redirect_host: '127.0.0.1:7777',
    scopes: ['read', 'write', 'delete'],
    external_id: null,
    last_used_at: null,
  })
  t.equal((await useTool(base, token, 'stats')).status, 200)
  const stranger = createTestClient(base, key)
  t.equal((await stranger.send('DELETE', `/v1/applications/${id}`)).status, 404)
  t.same((await api.send('DELETE', `/v1/applications/${id}`)).body, { deleted: true, id })
  const ended = await useTool(base, token, 'stats')
  t.equal(ended.status, 401)
  t.match(ended.challenge, /^Bearer error="invalid_token"/)
  t.equal((await client.refresh(refresh)).status, 400)
  t.same((await api.get('/v1/applications')).body.items, [])
  t.equal((await api.send('DELETE', '/v1/applications/x')).status, 404)
  const events = (await api.get('/v1/account/events')).body.items
  t.match(events.slice(0, 2), [
    { action: 'application.disconnected', subject: id, before: { name: 'Chat <b>&' } },
    {
      action: 'application.connected',
      subject: id,
      after: { scopes: ['read', 'write', 'delete'] },
    },
  ])
})

t.test('scopes that are none of ours are left out', async t => {
  const client = await connect({ scope: 'openid profile read' })
  const { body } = await client.exchange(
    (
      await client.allow(await client.begin({ scope: 'openid offline_access write' }), { key })
    ).searchParams.get('code')!,
  )
  t.match(body, { scope: 'write', refresh_token: String })
  t.notOk('id_token' in body)
  const silent = await (await connect()).login({ key }, { scope: undefined })
  t.equal(silent.scope, 'read write delete', 'without a scope all is asked for')
})

t.test('a client gives its tokens back', async t => {
  const client = await connect()
  const { access_token: token, refresh_token: refresh } = await client.login({ key })
  const body = new URLSearchParams({ token: refresh, client_id: client.clientId })
  t.equal((await fetch(`${base}/oauth/revoke`, { method: 'POST', body })).status, 200)
  t.equal((await useTool(base, token, 'stats')).status, 401)
  t.equal((await client.refresh(refresh)).status, 400)
})

t.test('the tokens end with the key, in every process', async t => {
  const second = await startSecondProcess(t, backend)
  const mine = await buildKey(backend)
  const { body: minted } = await createTestClient(base, mine).post('/v1/keys', { name: 'phone' })
  const client = await connect()
  const { access_token: token, refresh_token: refresh } = await client.login({ key: minted.key })
  t.equal((await useTool(second, token, 'stats')).status, 200)
  await createTestClient(base, mine).send('DELETE', `/v1/keys/${minted.id}`)
  t.equal((await useTool(second, token, 'stats')).status, 401)
  t.equal((await client.refresh(refresh)).status, 400)
  const page = await client.begin()
  await t.rejects(client.allow(page, { key: minted.key }), /401.*Invalid Memory Key/s)
  await t.rejects(client.allow(page, { key: `${mine}:read`, scopes: ['write'] }), /403/)
  await t.rejects(client.allow(page, { key: mine, scopes: [] }), /403.*Choose/s)
  const { searchParams } = await client.allow(page, { key: `${mine}:read`, scopes: ['read'] })
  t.ok(searchParams.get('code'), 'the form was shown again')
})
