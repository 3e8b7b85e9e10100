import t from 'tap'
import { ageOAuth } from '#test/support/checks/alter.ts'
import { buildKey } from '#test/support/start/api.ts'
import {
  FormBrowser,
  LoginClient,
  redirectUri,
  registerClient,
  startOAuthService,
  useTool,
} from '#test/support/start/oauth.ts'

/** What others would do to the login: each is refused with a 4xx, and nothing is let in. */

const { backend, base } = await startOAuthService(t)
const key = await buildKey(backend)
const id = await registerClient(base)
const connect = (clientId = id) => new LoginClient(base, clientId)

t.test('a redirect to an address that is not registered goes nowhere', async t => {
  for (const redirect_uri of [
    'https://evil.example/callback',
    'http://127.0.0.1:7777/callback/../else',
    'http://127.0.0.1:7777/callback?more',
    'http://127.0.0.1.evil.example:7777/callback',
    'javascript:alert(1)',
    '//evil.example',
    '',
  ]) {
    const response = await connect().authorize({ redirect_uri })
    t.equal(response.status, 400, redirect_uri)
    t.notOk(response.headers.get('location'))
    t.match(await response.text(), /This did not work/)
  }
  t.equal((await connect('unknown').authorize()).status, 400)
  // Programs listen on a port that they get at the moment (RFC 8252, section 7.3).
  const elsewhere = new LoginClient(base, id, 'http://127.0.0.1:9999/callback')
  t.ok((await elsewhere.login({ key })).access_token)
})

t.test('PKCE cannot be left out or weakened', async t => {
  const errorOf = async (changed: Record<string, string | undefined>) => {
    const response = await connect().authorize(changed)
    const { hash, search } = new URL(response.headers.get('location')!)
    return new URLSearchParams(hash.slice(1) || search).get('error')
  }
  const none = { code_challenge: undefined, code_challenge_method: undefined }
  t.equal(await errorOf(none), 'invalid_request')
  t.equal(await errorOf({ code_challenge_method: 'plain' }), 'invalid_request')
  t.equal(await errorOf({ code_challenge_method: undefined }), 'invalid_request')
  t.equal(await errorOf({ response_type: 'token' }), 'unsupported_response_type')
  const client = connect()
  const code = async () =>
    (await client.allow(await client.begin(), { key })).searchParams.get('code')!
  for (const code_verifier of [undefined, 'x'.repeat(43)]) {
    t.match(await client.exchange(await code(), { code_verifier }), {
      status: 400,
      body: { error: 'invalid_grant' },
    })
  }
})

t.test('a code is good for its client, address and resource, and in 30 seconds', async t => {
  const client = connect()
  const other = connect(await registerClient(base))
  const code = (await client.allow(await client.begin(), { key })).searchParams.get('code')!
  t.equal((await client.exchange(code, { client_id: other.clientId })).status, 400)
  t.equal((await client.exchange(code, { redirect_uri: `${redirectUri}2` })).status, 400)
  t.equal((await client.exchange(code, { resource: 'https://other.example/mcp' })).status, 400)
  const answers = await Promise.all([1, 2, 3].map(() => client.exchange(code)))
  t.same(
    answers.map(({ status }) => status),
    [200, 200, 200],
    'an answer that was lost, and two at once',
  )
  const works = async (): Promise<number[]> => {
    const used = answers.map(({ body }) => useTool(base, body.access_token, 'stats'))
    return (await Promise.all(used)).map(({ status }) => status)
  }
  t.same(await works(), [200, 200, 200])
  await ageOAuth(backend, '31 seconds')
  t.equal((await other.exchange(code)).status, 400)
  t.match(await client.exchange(code), { status: 400, body: { error: 'invalid_grant' } })
  t.same(await works(), [401, 401, 401], 'a later replay ends them')
  const asked = await connect().authorize({ resource: 'https://other.example/mcp' })
  const { searchParams } = new URL(asked.headers.get('location')!)
  t.equal(searchParams.get('error'), 'invalid_target')
  t.equal(searchParams.get('iss'), base, 'an answer names who gives it, against mix-up')
})

t.test('tokens of one client are of no use to another', async t => {
  const client = connect()
  const other = connect(await registerClient(base))
  const { access_token: token, refresh_token: refresh } = await client.login({ key })
  t.equal((await other.refresh(refresh)).status, 400)
  const body = new URLSearchParams({ token: refresh, client_id: other.clientId })
  await fetch(`${base}/oauth/revoke`, { method: 'POST', body })
  t.equal((await useTool(base, token, 'stats')).status, 200)
  t.equal((await useTool(base, refresh, 'stats')).status, 401, 'a refresh token opens nothing')
  t.equal((await useTool(base, `${token}x`, 'stats')).status, 401)
})

t.test('the form is shown in no frame, and sent from no other page or browser', async t => {
  const client = connect()
  const page = await client.begin()
  const shown = await client.browser.open(page)
  const policy = shown.headers.get('content-security-policy')!
  t.match(policy, /frame-ancestors 'none'/)
  t.match(policy, /form-action 'self' http:\/\/127\.0\.0\.1:7777;/)
  t.match(policy, /default-src 'none'/)
  t.equal(shown.headers.get('x-frame-options'), 'DENY')
  t.equal(shown.headers.get('cache-control'), 'no-store')
  const fields: [string, string][] = [
    ['key', key],
    ['decision', 'allow'],
    ['scope', 'read'],
  ]
  for (const headers of [
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { origin: 'https://evil.example' },
    { origin: 'null' },
  ]) {
    const sent = await client.browser.submit(page, fields, headers)
    t.equal(sent.status, 400, JSON.stringify(headers))
    t.notOk(sent.headers.get('location'))
  }
  const stranger = new FormBrowser()
  t.equal((await stranger.open(page)).status, 404, 'another browser sees nothing')
  t.equal((await stranger.submit(page, fields)).status, 404)
  const second = connect()
  await second.begin()
  t.equal((await second.browser.submit(page, fields)).status, 404, 'nor one with its own sign-in')
  const uid = page.split('/').at(-1)!
  t.equal((await stranger.open(`${base}/oauth/authorize/${uid}`)).status, 400)
  const denied = await client.browser.submit(page, [['decision', 'deny']])
  const { searchParams } = await client.follow(denied)
  t.equal(searchParams.get('error'), 'access_denied')
  t.equal((await client.browser.submit(page, fields)).status, 404, 'it is asked once')
})

t.test('a page holds what a client says of itself as text', async t => {
  const name = '<img src=x onerror=alert(1)>"\'&'
  const client = connect(await registerClient(base, { client_name: name }))
  const text = await (await client.browser.open(await client.begin())).text()
  t.notMatch(text, /<img/)
  t.match(text, /&lt;img src=x/)
  const echoed = await connect().authorize({ client_id: '<script>' })
  t.notMatch(await echoed.text(), /<script>/)
})

t.test('a client of a made-up kind is not registered', async t => {
  for (const metadata of [
    { redirect_uris: ['javascript:alert(1)'] },
    { redirect_uris: ['data:text/html,x'] },
    { redirect_uris: ['http://127.0.0.1/x', 'http://evil.example/callback'] },
    { redirect_uris: ['https://a.example/#x'] },
    { redirect_uris: [] },
    { redirect_uris: 'x' },
    { grant_types: ['client_credentials'] },
    { response_types: ['token'] },
    { jwks_uri: 'http://127.0.0.1/jwks', token_endpoint_auth_method: 'private_key_jwt' },
    { client_name: 7 },
  ]) {
    await t.rejects(registerClient(base, metadata), /invalid_/, JSON.stringify(metadata))
  }
})

t.test('malformed requests are refused, and no answer is a 500', async t => {
  const form = 'application/x-www-form-urlencoded'
  const bodies: [type: string, body: string][] = [
    ['application/json', '{'],
    ['application/json', '[]'],
    ['application/json', 'null'],
    ['application/json', '{"redirect_uris":{"a":1}}'],
    ['application/json', '{"__proto__":{"x":1},"redirect_uris":["https://a.example"]}'],
    [form, 'grant_type=authorization_code&grant_type=x'],
    [form, `grant_type=refresh_token&client_id=${id}`],
    [form, `grant_type=refresh_token&client_id=${id}&refresh_token=%00`],
    [form, `grant_type=authorization_code&client_id=${id}&code=%F0%28&code_verifier=x`],
    [form, 'token=x&client_id=%'],
    ['multipart/form-data; boundary=x', '--x--'],
    ['text/plain; charset=utf-16', 'x'],
  ]
  for (const path of ['/oauth/token', '/oauth/register', '/oauth/revoke']) {
    for (const [type, body] of bodies) {
      const response = await fetch(base + path, {
        method: 'POST',
        headers: { 'content-type': type },
        body,
      })
      const isKnown = path === '/oauth/register' && response.status === 201
      t.ok(isKnown || (response.status >= 400 && response.status < 500), `${path} ${type} ${body}`)
    }
    const large = await fetch(base + path, { method: 'POST', body: 'x'.repeat(17 * 1024) })
    t.equal(large.status, 413)
    t.equal((await fetch(base + path)).status, 405)
  }
  for (const query of [
    'client_id[]=x',
    `client_id=${id}&client_id=${id}`,
    `client_id=${id}&redirect_uri=%00&scope=%00`,
    `client_id=${id}&response_type=code&prompt=none&request=x.y.z`,
    `client_id=${id}&response_type=code&claims=%7B&max_age=x&resource=x`,
    'client_id=https%3A%2F%2F127.0.0.1%2Fclient.json',
    'client_id=https%3A%2F%2F169.254.169.254%2Flatest%2Fclient.json',
  ]) {
    const response = await fetch(`${base}/oauth/authorize?${query}`, { redirect: 'manual' })
    t.ok(response.status >= 300 && response.status < 500, `${response.status} ${query}`)
  }
  t.equal((await fetch(`${base}/oauth/sign-in/x`)).status, 404)
})

t.test(
  'guesses and registrations are bounded, and a sign-in under way is no one else’s',
  async t => {
    const quotas = {
      key: [{ points: 20, seconds: 60 }],
      address: [{ points: 20, seconds: 60 }],
      login: [{ points: 30, seconds: 60 }],
    }
    const limited = await startOAuthService(t, { quotas })
    const id = await registerClient(limited.base)
    const [guesser, client] = [new LoginClient(limited.base, id), new LoginClient(limited.base, id)]
    const [page, other] = [await guesser.begin(), await client.begin()]
    const allow = (key: string): [string, string][] => [
      ['key', key],
      ['decision', 'allow'],
      ['scope', 'read'],
    ]
    const guess = (): Promise<Response> =>
      guesser.browser.submit(page, allow(`mk_${'0'.repeat(32)}`))
    const statuses = new Set<number>()
    for (let n = 0; n < 25; n++) statuses.add((await guess()).status)
    t.same([...statuses], [401, 429])
    const key = await buildKey(limited.backend)
    t.equal((await guesser.browser.submit(page, allow(key))).status, 429)
    const floods: string[] = []
    const models: number[] = []
    // An answer does not wait until it is counted, so that on a busy machine a few more get through.
    const isBounded = () => floods.includes('refused') && models.includes(429)
    for (let n = 0; n < 300 && !isBounded(); n++) {
      floods.push(await registerClient(limited.base).catch(() => 'refused'))
      models.push((await fetch(`${limited.base}/v1/models`)).status)
    }
    t.ok(floods.includes('refused'), 'registrations are bounded')
    t.ok(models.includes(429))

    const { searchParams } = await client.allow(other, { key, scopes: ['read'] })
    const tokens = await client.exchange(searchParams.get('code')!)
    t.equal(tokens.status, 200, 'a sign-in that has begun goes on')
    const { refresh_token: refresh } = tokens.body
    t.equal((await client.refresh(refresh)).status, 200, 'and so does an application')
    const path = '/.well-known/oauth-authorization-server'
    t.equal((await fetch(limited.base + path)).status, 200, 'discovery is not counted')
    for (let n = 0; n < 20; n++) await client.refresh(refresh)
    t.match(await client.refresh(refresh), {
      status: 429,
      body: { error: 'temporarily_unavailable' },
    })
  },
)

t.test('behind trusted proxies each address has limits of its own', async t => {
  const quotas = {
    key: [{ points: 20, seconds: 60 }],
    address: [{ points: 5, seconds: 60 }],
    login: [{ points: 5, seconds: 60 }],
  }
  const { base } = await startOAuthService(t, { quotas, env: { TRUSTED_PROXIES: '2' } })
  const ask = async (forwarded: string): Promise<number> => {
    const headers = { 'x-forwarded-for': forwarded }
    return (await fetch(`${base}/v1/models`, { headers })).status
  }
  for (let n = 0; n < 5; n++) t.equal(await ask(`203.0.113.${n}, 198.51.100.7:4711, 10.0.0.1`), 401)
  t.equal(await ask('198.51.100.7, 10.0.0.1'), 429, 'what a client says itself does not count')
  t.equal(await ask('198.51.100.8, 10.0.0.1'), 401)
  t.equal(await ask('[2001:db8::1]:443, 10.0.0.1'), 401)
  t.equal(await ask('nonsense'), 401)
})

t.test('a name cannot turn around what stands beside it', async t => {
  const name = 'Claude is this app It\u202E\u0007\n\u2028'
  const client = new LoginClient(base, await registerClient(base, { client_name: name }))
  const shown = await (await client.browser.open(await client.begin())).text()
  t.match(shown, '<bdi>Claude is this app It</bdi>')
  t.match(shown, '<bdi>127.0.0.1:7777</bdi>')
  t.notOk(['\u202E', '\u0007', '\u2028'].some(mark => shown.includes(mark)))
})
