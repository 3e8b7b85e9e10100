import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { readConfig } from '#shared/core/config.ts'
import { tableText } from '#test/support/checks/observe.ts'
import { createTestClient, buildKey } from '#test/support/start/api.ts'
import { buildOrg } from '#test/support/start/admin.ts'
import { startIdentityProvider } from '#test/support/doubles/identity-provider.ts'
import {
  FormBrowser,
  LoginClient,
  registerClient,
  startOAuthService,
  useTool,
} from '#test/support/start/oauth.ts'
import {
  enterConsole,
  openLoginChoice,
  readLoginChoices,
  signInAt,
} from '#test/support/start/sign-in.ts'

/** The console's sign-in by a real OpenID provider. */

const verified = (email: string) => ({ email, email_verified: true })
const people: Record<string, ReturnType<typeof verified>> = {
  ada: verified('ada@example.com'),
  root: verified('root@example.com'),
  nobody: verified('nobody@example.com'),
  mallory: { email: 'root@example.com', email_verified: false },
}
const provider = await startIdentityProvider(t, people)
const { backend, base } = await startOAuthService(t, {
  env: { ...provider.env, ADMIN_EMAIL: 'root@example.com' },
})
provider.open(`${base}/console/login/callback`)
const { admin: founder, email: rosa, path: orgPath } = await buildOrg(backend, base)
people.rosa = verified(rosa.toUpperCase())
const ownerKey = await buildKey(backend, rosa)
const invited = await founder.post(`${orgPath}/keys`, { team_member_id: 'ada@example.com' })
const { memory_key: memberKey, id: memberKeyId } = invited.body

const signIn = (browser: FormBrowser, name: string, address = `${base}/console/login`) =>
  signInAt(browser, name, address)
const choicesOf = (browser: FormBrowser) => readLoginChoices(browser, base)
const open = (browser: FormBrowser, choice: string, headers: Record<string, string> = {}) =>
  openLoginChoice(browser, base, choice, headers)

const end = (key: string) =>
  fetch(`${base}/console/login/end`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
  })

const enter = async (name: string, kind: string): Promise<string> =>
  (await enterConsole(base, name, kind))!

t.test('a person who logs in lets an application into a vault, without a key', async t => {
  const begin = async (name: string) => {
    const client = new LoginClient(base, await registerClient(base))
    const page = await client.begin()
    const asked = await (await client.browser.open(page)).text()
    const [, link] = /href="(\/console\/login\?application=[^"]+)"/.exec(asked)!
    const shown = await (await signIn(client.browser, name, base + link!)).text()
    const choices = [...shown.matchAll(/name="choice"\s+value="([^"]+)"/g)].map(one => one[1]!)
    const allow = (choice: string, ...more: [string, string][]) =>
      client.browser.submit(page, [['choice', choice], ['decision', 'allow'], ...more])
    return { client, page, shown, choices, allow }
  }
  const { client, shown, choices, allow } = await begin('ada')
  t.match(shown, 'You are <bdi>ada@example.com</bdi>')
  t.match(shown, new RegExp(`which <bdi>${rosa}</bdi> has made for you`), 'whose it is')
  t.notMatch(
    shown,
    ' checked\n            />\n            The vault',
    'it is not chosen beforehand',
  )
  t.notMatch(shown, 'name="key"')
  t.equal(choices.length, 1)
  const read: [string, string] = ['scope', 'read']
  t.equal((await allow(choices[0]!)).status, 403, 'nothing is chosen that it may do')
  t.equal((await allow(mintId(), read)).status, 403, 'what the email does not open')
  const { searchParams } = await client.follow(await allow(choices[0]!, read))
  const { body: tokens } = await client.exchange(searchParams.get('code')!)
  t.equal((await useTool(base, tokens.access_token, 'stats')).status, 200)
  const member = createTestClient(base, memberKey)
  t.match((await member.get('/v1/applications')).body.items, [{ name: 'Test client' }])
  t.equal((await allow(choices[0]!, read)).status, 404, 'the sign-in is over')

  const nobody = await begin('nobody')
  t.match(nobody.shown, 'Nothing here belongs to <bdi>nobody@example.com</bdi>')
  t.match(nobody.shown, 'name="key"')
  const stranger = new LoginClient(base, await registerClient(base))
  const page = await stranger.begin()
  const fields: [string, string][] = [['choice', choices[0]!], ['decision', 'allow'], read]
  t.equal((await stranger.browser.submit(page, fields)).status, 403, 'a browser without a login')
  const rosas = await begin('rosa')
  t.equal(rosas.choices.length, 2, 'the vaults of an owner, no teams')
  for (const choice of rosas.choices.slice(0, 1)) {
    const { searchParams: end } = await rosas.client.follow(await rosas.allow(choice, read))
    const { body } = await rosas.client.exchange(end.get('code')!)
    t.equal((await useTool(base, body.access_token, 'stats')).status, 200)
  }
})

t.test('the page of the console offers it', async t => {
  const page = await (await fetch(`${base}/console`)).text()
  t.match(page, /<meta name="login" content="Example"/)
})

t.test('an owner chooses between teams and vault, and signs out of either', async t => {
  const browser = new FormBrowser()
  const back = await signIn(browser, 'rosa')
  t.equal(back.headers.get('location'), '/console#/login')
  const { email, choices } = await choicesOf(browser)
  t.equal(email, rosa)
  t.same(choices.map(({ kind }) => kind).toSorted(), ['admin', 'owner', 'owner'])
  const { id } = choices.find(({ kind }) => kind === 'owner')!
  t.equal((await open(browser, id, { 'sec-fetch-site': 'cross-site' })).status, 400)
  t.equal((await open(browser, 'member')).status, 403)
  t.equal((await open(browser, id)).status, 403, 'one answer a sign-in')
  const owner = createTestClient(base, await enter('rosa', 'owner'))
  const keys = (await owner.get('/v1/keys')).body.items
  t.match(keys[0], { name: 'Console login', current: true, expires_at: String })
  const adminKey = await enter('rosa', 'admin')
  const admin = createTestClient(base, adminKey)
  t.match((await admin.get('/v1/orgs')).body, { orgs: [{}] })
  t.equal((await admin.get('/v1/operator/usage?days=1')).status, 403)
  t.equal((await end(adminKey)).status, 204)
  t.equal((await admin.get('/v1/orgs')).status, 401)
  const vaultKey = await enter('rosa', 'owner')
  t.equal((await end(vaultKey)).status, 204)
  t.equal((await createTestClient(base, vaultKey).get('/v1/memory/stats')).status, 401)
  const { items: events } = (await createTestClient(base, ownerKey).get('/v1/account/events')).body
  const byLogin = events.slice(0, 2).map((event: { action: string }) => event.action)
  t.same(byLogin, ['key.revoked', 'key.minted'])
  t.equal(events[0].actor, rosa)
  t.equal((await end(ownerKey)).status, 204)
  const pasted = createTestClient(base, ownerKey)
  t.equal((await pasted.get('/v1/memory/stats')).status, 200, 'a pasted key goes on')
})

t.test('a member opens their vault, and is out once removed', async t => {
  const browser = new FormBrowser()
  await signIn(browser, 'ada')
  t.match((await choicesOf(browser)).choices, [
    { kind: 'member', name: String, ownedBy: rosa, isNew: false },
  ])
  t.equal(await enter('ada', 'member'), memberKey)
  t.equal((await founder.send('DELETE', `${orgPath}/keys/${memberKeyId}`)).status, 200)
  t.same((await choicesOf(browser)).choices, [])
  t.equal((await createTestClient(base, memberKey).get('/v1/memory/stats')).status, 401)
})

t.test('the operator is the one of ADMIN_EMAIL, and others open nothing', async t => {
  const operator = createTestClient(base, await enter('root', 'admin'))
  t.equal((await operator.get('/v1/operator/usage?days=1')).status, 200)
  const browser = new FormBrowser()
  await signIn(browser, 'nobody')
  t.same((await choicesOf(browser)).choices, [])
  const unverified = await signIn(new FormBrowser(), 'mallory')
  t.equal(unverified.status, 403)
  t.match(await unverified.text(), /has not verified/)
})

t.test('an answer counts for the browser that asked, once', async t => {
  const browser = new FormBrowser()
  const begun = await browser.open(`${base}/console/login`)
  const { searchParams } = new URL(begun.headers.get('location')!)
  t.match(searchParams.get('code_challenge_method'), 'S256')
  t.ok(searchParams.get('nonce'))
  const callback = `${base}/console/login/callback`
  const query = `code=x&state=${searchParams.get('state')}&iss=${provider.issuer}`
  t.equal((await fetch(`${callback}?${query}`)).status, 403, 'no cookie')
  t.equal((await browser.open(`${callback}?code=x&state=other`)).status, 403)
  t.equal((await browser.open(`${callback}?${query}`)).status, 403, 'the state is used up')
  t.equal((await browser.open(`${base}/console/login/choices`)).status, 403)
  t.equal((await open(new FormBrowser(), 'admin')).status, 403)
  t.equal((await fetch(`${base}/console/login/open`, { method: 'POST', body: '{}' })).status, 400)
  t.equal((await fetch(`${base}/console/login/end`, { method: 'POST' })).status, 401)
})

t.test('a link says what it opens before it is used up, once', async t => {
  const made = await fetch(`${base}/console/login/links`, {
    method: 'POST',
    headers: { 'x-memory-key': `${ownerKey}:read` },
  })
  const { path } = (await made.json()) as { path: string }
  const secret = path.replace('/console#/open/', '')
  const ask = async (more: object = {}) => {
    const init = { method: 'POST', body: JSON.stringify({ secret, ...more }) }
    const response = await fetch(`${base}/console/login/links/open`, init)
    return { status: response.status, body: await response.json() }
  }
  const told = { account: rosa, name: String, key: new RegExp(ownerKey.slice(-4)) }
  t.match(await ask({ look: true }), { status: 200, body: told })
  t.match(await ask({ look: true }), { status: 200, body: told })
  t.match(await ask(), { status: 200, body: { key: `${ownerKey}:read` } })
  t.equal((await ask({ look: true })).status, 403)
  t.equal((await ask()).status, 403)
})

t.test('a link waits for an hour, or for as many as are asked for', async t => {
  const make = (body: object) =>
    fetch(`${base}/console/login/links`, {
      method: 'POST',
      headers: { 'x-memory-key': ownerKey },
      body: JSON.stringify(body),
    })
  for (const hours of [0, 169, '2', null]) t.equal((await make({ hours })).status, 400, `${hours}`)
  for (const other of [{ hour: 2 }, { hours: 2, days: 3 }, [2]])
    t.equal((await make(other)).status, 400, 'a misspelt or unknown field makes no link')
  for (const [body, seconds] of [
    [{}, 3_600],
    [{ hours: 168 }, 604_800],
  ] as const) {
    const before = Date.now()
    t.equal((await make(body)).status, 201)
    const ends = [
      ...(await tableText(backend, 'oauth_records')).matchAll(/"expires_at":"([^"]+)"/g),
    ]
    const last = Math.max(...ends.map(([, end]) => Date.parse(end!)))
    t.ok(last >= before + seconds * 1_000, `${last - before} ms`)
  }
})

t.test('settings are whole and safe, or none', t => {
  const env = { DATABASE_URL: 'x', MONGODB_URI: 'x' }
  const faultsOf = (given: Record<string, string>): string => {
    try {
      readConfig({ ...env, ...given })
      return ''
    } catch (error) {
      return (error as Error).message
    }
  }
  const whole = { OIDC_ISSUER: 'https://id.example', OIDC_CLIENT_ID: 'a', OIDC_CLIENT_SECRET: 'b' }
  t.match(faultsOf({ OIDC_ISSUER: 'https://id.example' }), /OIDC_CLIENT_ID is missing/)
  t.match(faultsOf(whole), /PUBLIC_URL is missing/)
  t.match(faultsOf({ ...whole, OIDC_ISSUER: 'http://id.example' }), /OIDC_ISSUER must/)
  const everyTenant = { ...whole, OIDC_ISSUER: 'https://login.microsoftonline.com/common/v2.0' }
  t.match(faultsOf({ ...everyTenant, OIDC_VOUCH_EMAILS: 'on' }), /issuer of many tenants/)
  for (const url of ['http://vault.example', 'https://vault.example/x', 'vault.example', 'ftp://x'])
    t.match(faultsOf({ PUBLIC_URL: url }), /PUBLIC_URL must/, url)
  t.notMatch(faultsOf({ ...whole, PUBLIC_URL: 'https://vault.example/' }), /PUBLIC_URL|OIDC/)
  t.end()
})
