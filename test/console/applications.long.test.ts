import { createServer } from 'node:http'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { OAuthClientProvider } from '@modelcontextprotocol/client'
import t, { type Test } from 'tap'
import { barriersOf, look, noBrowser, openTab, press, visit } from '#test/console/browser.ts'
import { buildKey, createTestClient, startJobWorkers } from '#test/support/start/api.ts'
import { listen } from '#test/support/start/listen.ts'
import { startOAuthService } from '#test/support/start/oauth.ts'

/** A client of MCP that is given an address alone, from "add connector" to "revoked". */

const { backend, base } = await startOAuthService(t)
await startJobWorkers(backend)
const key = await buildKey(backend)

/** A program that is sent the code at its own address. */
async function startProgram(t: Test) {
  let onAnswer: (answer: URLSearchParams) => void
  const answer = new Promise<URLSearchParams>(resolve => (onAnswer = resolve))
  const origin = await listen(
    t,
    createServer((request, response) => {
      const { searchParams } = new URL(request.url!, 'http://program')
      response.end('You may close this page.')
      if (searchParams.has('code')) onAnswer(searchParams)
    }),
  )
  const redirectUrl = `${origin}/callback`
  const kept: Record<string, unknown> = {}
  let sentTo: URL | undefined
  const authProvider: OAuthClientProvider = {
    redirectUrl,
    clientMetadata: {
      client_name: 'Desk assistant',
      redirect_uris: [redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      token_endpoint_auth_method: 'none',
    },
    clientInformation: () => kept.client as never,
    saveClientInformation: client => void (kept.client = client),
    tokens: () => kept.tokens as never,
    saveTokens: tokens => void (kept.tokens = tokens),
    redirectToAuthorization: url => void (sentTo = url),
    saveCodeVerifier: verifier => void (kept.verifier = verifier),
    codeVerifier: () => kept.verifier as string,
    saveDiscoveryState: state => void (kept.discovery = state),
    discoveryState: () => kept.discovery as never,
  }
  const open = () => new StreamableHTTPClientTransport(new URL('/mcp', base), { authProvider })
  return { answer, open, sentTo: () => sentTo!.href }
}

t.test('a connector is added, recalls, and is revoked', { skip: noBrowser }, async t => {
  await createTestClient(base, key).post('/v1/memory/ingest?wait=true', {
    messages: [{ role: 'user', content: 'My boat is called Merganser.' }],
  })
  const program = await startProgram(t)
  const first = program.open()
  const connecting = new Client({ name: 'desk', version: '1.0.0' }).connect(first)
  await t.rejects(connecting, /Unauthorized/i, 'it has to log in')
  const { page, faults } = await openTab(t, base)
  await page.goto(program.sentTo())
  await page.getByRole('heading', { name: 'Connect Desk assistant' }).waitFor()
  await look(t, page, 'connect-application')
  for (const width of [390, 2560]) {
    await page.setViewportSize({ width, height: 900 })
    const isWider = await page.evaluate(
      () => document.documentElement.scrollWidth > document.documentElement.clientWidth,
    )
    t.notOk(isWider, `${width} px`)
  }
  await page.getByLabel('Memory Key').fill('mk_wrong00000000000000000000000000000')
  await page.getByLabel('Delete').uncheck()
  await press(page, 'Allow')
  await page.getByRole('alert').waitFor()
  t.match(await page.getByRole('alert').textContent(), /Invalid Memory Key/)
  t.notOk(await page.getByLabel('Delete').isChecked(), 'what was chosen stays')
  t.same(await barriersOf(page), [])
  await page.getByLabel('Memory Key').fill(key)
  await press(page, 'Allow')
  await page.getByText('You may close this page.').waitFor()
  await first.finishAuth(await program.answer)

  const client = new Client({ name: 'desk', version: '1.0.0' })
  await client.connect(program.open())
  t.teardown(() => client.close())
  const { tools } = await client.listTools()
  const isListed = (name: string) => tools.some(tool => tool.name === name)
  t.same([isListed('store'), isListed('delete')], [true, false])
  const asked = { name: 'search', arguments: { query: 'the name of the boat' } }
  const { structuredContent } = await client.callTool(asked)
  t.match(structuredContent, { memories: [{ content: /Merganser/ }] })

  await page.goto('/console')
  await page.getByLabel('Key', { exact: false }).first().fill(key)
  await press(page, 'Open')
  await page.getByRole('button', { name: 'Sign out' }).waitFor()
  await visit(page, 'applications')
  await page.getByText('Desk assistant').waitFor()
  await look(t, page, 'applications')
  await press(page, 'Revoke: Desk assistant')
  await press(page.getByRole('dialog'), 'Revoke')
  await page.getByText('No application is connected').waitFor()
  await t.rejects(client.callTool(asked))
  t.same(faults, [])
})

t.test('the form works without scripts, and in the dark', { skip: noBrowser }, async t => {
  const program = await startProgram(t)
  const connecting = new Client({ name: 'desk', version: '1.0.0' }).connect(program.open())
  await t.rejects(connecting)
  const { page } = await openTab(t, base)
  const context = await page.context().browser()!.newContext({
    javaScriptEnabled: false,
    colorScheme: 'dark',
  })
  t.teardown(() => context.close())
  const plain = await context.newPage()
  await plain.goto(program.sentTo())
  await plain.getByLabel('Memory Key').fill(key)
  await plain.getByRole('button', { name: 'Allow' }).click()
  await plain.getByText('You may close this page.').waitFor()
  t.ok((await program.answer).get('code'))
})
