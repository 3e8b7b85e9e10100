import t from 'tap'
import { buildKey } from '#test/support/start/api.ts'
import { LoginClient, startOAuthService, useTool } from '#test/support/start/oauth.ts'
import { clientShapes } from '#test/support/samples/oauth-registrations.ts'

/** Registrations and scopes of the clients that there are: each is answered with what is served of what it asked. */

const { backend, base } = await startOAuthService(t)
const key = await buildKey(backend)

type Registered = {
  client_id: string
  client_secret?: string
  grant_types: string[]
  response_types: string[]
  token_endpoint_auth_method: string
}

async function register(metadata: object): Promise<Registered> {
  const response = await fetch(`${base}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    // In chunks, without a length.
    body: new Blob([JSON.stringify(metadata)]).stream(),
    duplex: 'half',
  } as RequestInit)
  if (response.status !== 201) throw new Error(`${response.status} ${await response.text()}`)
  return (await response.json()) as Registered
}

for (const { client, metadata, scope } of clientShapes) {
  t.test(`${client} registers, logs in and refreshes`, async t => {
    const registered = await register(metadata)
    const asked = metadata.token_endpoint_auth_method ?? 'none'
    t.equal(registered.token_endpoint_auth_method, asked)
    t.equal('client_secret' in registered, asked !== 'none', 'a secret only where it works')
    t.same(registered.response_types, ['code'])
    const mayRefresh = ((metadata.grant_types as string[]) ?? ['refresh_token']).includes(
      'refresh_token',
    )
    const grants = ['authorization_code', ...(mayRefresh ? ['refresh_token'] : [])]
    t.same(registered.grant_types, grants)

    const { client_id: id, client_secret: secret } = registered
    const [redirectUri] = metadata.redirect_uris as string[]
    const login = new LoginClient(base, id, redirectUri)
    const page = await login.begin({ scope, nonce: 'n', prompt: 'select_account', max_age: 'x' })
    const shown = await (await login.browser.open(page)).text()
    const offered = [...shown.matchAll(/name="scope" value="(\w+)"/g)].map(([, name]) => name)
    const ours = ['read', 'write', 'delete'].filter(name => scope?.split(/[ ,]/).includes(name))
    t.same(offered, ours.length > 0 ? ours : ['read', 'write', 'delete'])
    const code = (await login.allow(page, { key })).searchParams.get('code')!
    const basic = asked === 'client_secret_basic'
    const send = async (fields: Record<string, string>) => {
      const response = await fetch(`${base}/oauth/token`, {
        method: 'POST',
        headers: basic ? { authorization: `Basic ${btoa(`${id}:${secret}`)}` } : {},
        body: new URLSearchParams({
          ...(!basic && { client_id: id }),
          ...(!basic && secret !== undefined && { client_secret: secret }),
          ...fields,
        }),
      })
      const body = (await response.json()) as { access_token: string; refresh_token: string }
      return { status: response.status, body }
    }
    const { status, body } = await send({
      grant_type: 'authorization_code',
      code,
      code_verifier: login.verifier,
      redirect_uri: redirectUri!,
    })
    t.equal(status, 200, JSON.stringify(body))
    t.equal((await useTool(base, body.access_token, 'stats')).status, 200)
    t.equal('refresh_token' in body, mayRefresh)
    if (!mayRefresh) return
    const refreshed = await send({ grant_type: 'refresh_token', refresh_token: body.refresh_token })
    t.equal(refreshed.status, 200)
  })
}

t.test('the metadata name the scopes that are served', async t => {
  const response = await fetch(`${base}/.well-known/oauth-authorization-server`)
  t.match(await response.json(), { scopes_supported: ['read', 'write', 'delete'] })
})

t.test('the resource is taken in every spelling of /mcp', async t => {
  const { client_id: id } = await register({ redirect_uris: ['http://127.0.0.1:7777/callback'] })
  for (const resource of ['/mcp', '/mcp/', '', '/', '/mcp?tools=search'].map(path => base + path)) {
    const login = new LoginClient(base, id)
    const page = await login.begin({ resource })
    const code = (await login.allow(page, { key })).searchParams.get('code')!
    const { status, body } = await login.exchange(code, { resource })
    t.equal(status, 200, resource)
    t.equal((await useTool(base, body.access_token, 'stats')).status, 200, resource)
    t.equal((await login.refresh(body.refresh_token, { resource })).status, 200, resource)
  }
  for (const [path, resource] of [
    ['/.well-known/oauth-protected-resource/mcp', '/mcp'],
    ['/.well-known/oauth-protected-resource/mcp/', '/mcp/'],
  ] as const) {
    t.match(await (await fetch(base + path)).json(), { resource: base + resource })
    const { headers } = await fetch(base + resource, { method: 'POST' })
    t.match(headers.get('www-authenticate'), `resource_metadata="${base}${path}"`)
  }
})

t.test('tokens are refreshed at /token too, where the client for Python looks', async t => {
  const { client_id: id } = await register({ redirect_uris: ['http://127.0.0.1:7777/callback'] })
  const { refresh_token: refresh } = await new LoginClient(base, id).login({ key })
  const response = await fetch(`${base}/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'refresh_token',
      refresh_token: refresh,
      client_id: id,
    }),
  })
  t.match(await response.json(), { access_token: String, refresh_token: String })
})

t.test('a client that is not known leads somewhere', async t => {
  const response = await new LoginClient(base, 'forgotten').authorize()
  t.equal(response.status, 400)
  t.match(await response.text(), /Remove the connection .* add it again/)
})

t.test('addresses come from the configuration, whatever a request says', async t => {
  const { host } = new URL(base)
  const foreign = { host: 'evil.example', 'x-forwarded-host': 'evil.example' }
  const { request } = await import('node:http')
  const get = (path: string, headers: Record<string, string> = {}) =>
    new Promise<{ text: string; headers: import('node:http').IncomingHttpHeaders }>(
      (resolve, reject) => {
        const [hostname, port] = host.split(':')
        const sent = { ...foreign, ...headers }
        request({ hostname, port, path, headers: sent }, response => {
          let text = ''
          response.on('data', chunk => (text += String(chunk)))
          response.on('end', () => resolve({ text, headers: response.headers }))
        })
          .on('error', reject)
          .end()
      },
    )
  const metadata = await get('/.well-known/oauth-authorization-server')
  t.notMatch(metadata.text, /evil/)
  t.match(JSON.parse(metadata.text), { authorization_endpoint: `${base}/oauth/authorize` })
  t.notMatch((await get('/.well-known/oauth-protected-resource/mcp')).text, /evil/)
  const challenge = (await get('/mcp')).headers['www-authenticate']
  t.match(challenge, base)
  t.notMatch(challenge, /evil/)

  const { client_id: id } = await register({ redirect_uris: ['http://127.0.0.1:7777/callback'] })
  const login = new LoginClient(base, id)
  const page = await login.begin()
  const shown = await login.browser.open(page, { headers: { 'x-forwarded-host': 'evil.example' } })
  t.notMatch(await shown.text(), /evil/)
  const allowed = await login.browser.open(page, {
    method: 'POST',
    headers: { 'x-forwarded-host': 'evil.example', origin: base },
    body: new URLSearchParams({ key, decision: 'allow', scope: 'read' }),
  })
  t.match(allowed.headers.get('location'), base)
  const elsewhere = await login.browser.open(page, {
    method: 'POST',
    headers: { origin: 'https://evil.example', host: 'evil.example' },
    body: new URLSearchParams({ key, decision: 'allow', scope: 'read' }),
  })
  t.equal(elsewhere.status, 400)
})
