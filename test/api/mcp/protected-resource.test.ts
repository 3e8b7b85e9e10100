import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import t from 'tap'
import { startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'

/** What a client that wants to log in finds: there is no login, and it is told so. */

const backend = await createTestBackend(t)
const { base } = await startTestApi(t, backend)

t.test('401 names the metadata of the resource, which name no authorization server', async t => {
  const refused = await fetch(`${base}/mcp`, { method: 'POST', body: '{}' })
  t.equal(refused.status, 401)
  const url = /^Bearer resource_metadata="([^"]+)"$/.exec(
    refused.headers.get('www-authenticate')!,
  )![1]!
  const metadata = (await (await fetch(url)).json()) as object
  t.match(metadata, { resource: `${base}/mcp`, bearer_methods_supported: ['header'] })
  t.notOk('authorization_servers' in metadata)
  const atRoot = await fetch(`${base}/.well-known/oauth-protected-resource`)
  t.same(await atRoot.json(), metadata)
  t.equal((await fetch(`${base}/.well-known/oauth-authorization-server`)).status, 404)
  const headers = { 'x-forwarded-proto': 'https', host: 'memory.example.com' }
  const proxied = await fetch(url, { headers })
  t.match(await proxied.json(), { resource: /^https:.*\/mcp$/ })
  const elsewhere = await fetch(`${base}/v1/memory/stats`)
  t.equal(elsewhere.headers.get('www-authenticate'), 'Bearer', 'other endpoints are as before')
})

t.test('a client that tries to log in shows what to do', async t => {
  const client = new Client({ name: 'test', version: '1.0.0' })
  const transport = new StreamableHTTPClientTransport(new URL('/mcp', base), {
    authProvider: {
      redirectUrl: 'http://127.0.0.1:1/callback',
      clientMetadata: { redirect_uris: ['http://127.0.0.1:1/callback'] },
      clientInformation: () => undefined,
      saveClientInformation: () => {},
      tokens: () => undefined,
      saveTokens: () => {},
      redirectToAuthorization: () => void t.fail('no login page is opened'),
      saveCodeVerifier: () => {},
      codeVerifier: () => '',
    },
  })
  const error = await client.connect(transport).then(
    () => undefined,
    (error: unknown) => error as Error & { body?: string },
  )
  t.match(
    `${error?.message} ${error?.body}`,
    /no OAuth server: put a Memory Key into the configuration/,
  )
})
