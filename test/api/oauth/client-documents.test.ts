import t from 'tap'
import type { ServerResponse } from 'node:http'
import { buildKey, createTestClient } from '#test/support/api.ts'
import { startHttpsServer } from '#test/support/https-server.ts'
import { LoginClient, startOAuthService } from '#test/support/oauth.ts'

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
