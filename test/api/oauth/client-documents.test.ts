import { generateKeyPairSync, randomUUID, sign } from 'node:crypto'
import t from 'tap'
import type { ServerResponse } from 'node:http'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { startHttpsServer } from '#test/support/doubles/https-server.ts'
import { LoginClient, startOAuthService } from '#test/support/start/oauth.ts'

/** Clients whose id is the address of their metadata (draft-ietf-oauth-client-id-metadata-document). */

const asked: string[] = []
let answer: (response: ServerResponse, id: string) => void
const site = await startHttpsServer(t, (request, response) => {
  asked.push(request.url!)
  answer(response, `${site}${request.url}`)
})

const document = (id: string) => ({
  client_id: id,
  client_name: 'Editor',
  redirect_uris: ['http://localhost/callback', 'editor.app:/callback'],
  grant_types: ['authorization_code', 'refresh_token'],
  token_endpoint_auth_method: 'none',
})
const redirectTo = 'http://localhost:4321/callback'

t.test('a client is known by its document, and shown with the host of it', async t => {
  const { backend, base } = await startOAuthService(t, { env: { WEBHOOK_LOOPBACK: 'on' } })
  const key = await buildKey(backend)
  answer = (response, id) => response.end(JSON.stringify(document(id)))
  const client = new LoginClient(base, `${site}/editor.json`, redirectTo)
  const page = await (await client.browser.open(await client.begin())).text()
  t.match(page, new RegExp(`It is from <strong><bdi>${new URL(site).host}</bdi></strong\\s*>`))
  const tokens = await client.login({ key })
  t.equal((await client.refresh(tokens.refresh_token)).status, 200)
  t.match((await createTestClient(base, key).get('/v1/applications')).body.items, [
    { name: 'Editor', client_id: `${site}/editor.json`, redirect_host: 'localhost:4321' },
  ])
  t.equal(asked.filter(path => path === '/editor.json').length, 1, 'it is kept for a while')
  const app = new LoginClient(base, `${site}/editor.json`, 'editor.app:/callback')
  t.match(await app.begin(), /sign-in/)
  const foreign = new LoginClient(base, `${site}/editor.json`, 'https://evil.example/callback')
  t.equal((await foreign.authorize()).status, 400)
})

t.test('a client signs for itself with the key that its document names', async t => {
  const { backend, base } = await startOAuthService(t, { env: { WEBHOOK_LOOPBACK: 'on' } })
  const memoryKey = await buildKey(backend)
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'one', alg: 'RS256', use: 'sig' }
  answer = (response, id) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(
      JSON.stringify(
        id.endsWith('keys.json')
          ? { keys: [jwk] }
          : {
              ...document(id),
              redirect_uris: [chatUri],
              token_endpoint_auth_method: 'private_key_jwt',
              token_endpoint_auth_signing_alg: 'RS256',
              jwks_uri: `${site}/keys.json`,
            },
      ),
    )
  // The shape of ChatGPT's document (pocket-id/pocket-id#1718, operately/operately#5164).
  const chatUri = 'https://chat.example/connector/oauth/1'
  const id = `${site}/oauth/1/client.json`
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const assertion = (seconds = 60): Record<string, string> => {
    const exp = Math.floor(Date.now() / 1_000) + seconds
    const claims = { iss: id, sub: id, aud: base, jti: randomUUID(), exp }
    const signed = `${part({ alg: 'RS256', kid: 'one' })}.${part(claims)}`
    return {
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion: `${signed}.${sign('sha256', Buffer.from(signed), privateKey).toString('base64url')}`,
    }
  }
  const client = new LoginClient(base, id, chatUri)
  const { searchParams } = await client.allow(await client.begin(), { key: memoryKey })
  const code = searchParams.get('code')!
  t.equal((await client.exchange(code)).status, 401, 'without its signature')
  t.equal((await client.exchange(code, assertion(7_200))).status, 401, 'for more than an hour')
  const used = assertion()
  const { status, body } = await client.exchange(code, used)
  t.equal(status, 200)
  t.equal((await client.refresh(body.refresh_token, used)).status, 401, 'one is for one request')
  t.equal((await client.refresh(body.refresh_token, assertion())).status, 200)
  const metadata = await fetch(`${base}/.well-known/oauth-authorization-server`)
  const { token_endpoint_auth_methods_supported: methods } = (await metadata.json()) as {
    token_endpoint_auth_methods_supported: string[]
  }
  t.ok(methods.includes('private_key_jwt') && methods.includes('none'), methods.join(' '))
})

t.test('a document that is none, too large, late or elsewhere is refused', async t => {
  const { base } = await startOAuthService(t, { env: { WEBHOOK_LOOPBACK: 'on' } })
  const cases: Record<string, typeof answer> = {
    other: response => response.end(JSON.stringify(document(`${site}/editor.json`))),
    secret: (response, id) => response.end(JSON.stringify({ ...document(id), client_secret: 'x' })),
    large: (response, id) =>
      response.end(JSON.stringify({ ...document(id), x: 'x'.repeat(6_000) })),
    text: response => response.end('<html>'),
    gone: response => response.writeHead(404).end(),
    moved: response => response.writeHead(302, { location: `${site}/editor.json` }).end(),
    endless: (response, id) => void response.write(JSON.stringify(document(id))),
  }
  for (const [name, respond] of Object.entries(cases)) {
    answer = respond
    const { status } = await new LoginClient(base, `${site}/${name}`, redirectTo).authorize()
    t.equal(status, 400, name)
  }
})

t.test('no address of the own network is asked', async t => {
  const { base } = await startOAuthService(t)
  asked.length = 0
  const { port } = new URL(site)
  for (const host of ['localhost', '127.0.0.1', '[::1]', '[::ffff:127.0.0.1]', '0x7f000001']) {
    const id = `https://${host}:${port}/editor.json`
    t.equal((await new LoginClient(base, id, redirectTo).authorize()).status, 400, host)
  }
  t.same(asked, [])
})
