import { execFileSync, spawn } from 'node:child_process'
import { createServer, request as ask, type IncomingMessage, type ServerResponse } from 'node:http'
import { createInterface } from 'node:readline'
import { auth, type OAuthClientProvider } from '@modelcontextprotocol/client'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import t, { type Test } from 'tap'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { listen } from '#test/support/start/listen.ts'
import { LoginClient } from '#test/support/start/oauth.ts'
import { startWeb, type ReadyProcess } from '#test/support/start/processes.ts'

/**
 * The official clients of MCP log in, refresh while processes are killed and answers are lost, and are shut out. The one
 * for Python runs where `MCP_PYTHON` names a Python that has the package `mcp` 2.3.
 */

t.setTimeout(0)

const front = createServer()
const base = await listen(t, front)
const backend = await createTestBackend(t, { env: { PUBLIC_URL: base } })
const key = await buildKey(backend)
const start = (): Promise<ReadyProcess> => startWeb(t, backend.config, { PUBLIC_URL: base })
let web = await start()

/** What becomes of the next answer of the token endpoint. */
let fate: 'arrives' | 'lost' | 'killed' = 'arrives'
const lost: string[] = []

/** A router in front of one web process. */
function forward(request: IncomingMessage, response: ServerResponse): void {
  const { method, url, headers } = request
  const of = `${web.base}${url}`
  const isToken = /^\/(?:oauth\/)?token$/.test(url!) && method === 'POST'
  const sent = ask(of, { method, headers }, answer => {
    if (isToken && fate !== 'arrives') {
      lost.push(fate)
      if (fate === 'killed') web.kill('SIGKILL')
      fate = 'arrives'
      answer.resume()
      return void response.destroy()
    }
    response.writeHead(answer.statusCode!, answer.headers)
    answer.pipe(response)
  })
  sent.on('error', () => response.destroy())
  request.pipe(sent)
}
front.on('request', forward)

const redirectUrl = 'http://127.0.0.1:7777/callback'

/** A person who allows what they are asked, with the key. @returns the address with the code */
async function consent(address: string): Promise<URL> {
  const person = new LoginClient(base, '', redirectUrl)
  const begun = await person.browser.open(address)
  const page = new URL(begun.headers.get('location')!, base).href
  return person.allow(page, { key })
}

const disconnect = async (): Promise<void> => {
  const api = createTestClient(base, key)
  const { items } = (await api.get('/v1/applications')).body
  for (const { id } of items) await api.send('DELETE', `/v1/applications/${id}`)
}

/** Kills the process, or only loses the answer, at each of these refreshes. */
const fates = ['lost', 'killed', 'lost', 'killed', 'killed'] as const

t.test('the one for TypeScript', async t => {
  const kept: Record<string, unknown> = {}
  let sentTo: URL | undefined
  const authProvider: OAuthClientProvider = {
    redirectUrl,
    clientMetadata: { client_name: 'Desk', redirect_uris: [redirectUrl] },
    clientInformation: () => kept.client as never,
    saveClientInformation: client => void (kept.client = client),
    tokens: () => kept.tokens as never,
    saveTokens: tokens => void (kept.tokens = tokens),
    redirectToAuthorization: url => void (sentTo = url),
    saveCodeVerifier: verifier => void (kept.verifier = verifier),
    codeVerifier: () => kept.verifier as string,
  }
  const serverUrl = new URL('/mcp', base)
  const open = () => new StreamableHTTPClientTransport(serverUrl, { authProvider })
  const first = open()
  await t.rejects(new Client({ name: 'desk', version: '1.0.0' }).connect(first))
  const { searchParams } = await consent(sentTo!.href)
  await first.finishAuth(searchParams)
  const use = async (t: Test): Promise<void> => {
    const client = new Client({ name: 'desk', version: '1.0.0' })
    await client.connect(open())
    const { isError } = await client.callTool({ name: 'stats', arguments: {} })
    t.notOk(isError)
    await client.close()
  }
  await use(t)
  for (const next of fates) {
    // Ready before: a machine that takes 30 seconds to start one would use up the time in which a token is good again.
    const standby = next === 'killed' ? await start() : web
    fate = next
    const before = lost.length
    const first = await auth(authProvider, { serverUrl }).catch(() => 'failed')
    t.not(first, 'AUTHORIZED', `${next}: the answer does not arrive`)
    t.equal(lost.length, before + 1)
    if (next === 'killed') {
      await web.exited
      web = standby
    }
    t.equal(await auth(authProvider, { serverUrl }), 'AUTHORIZED', 'the same token again')
    await use(t)
  }
  await disconnect()
  await t.rejects(new Client({ name: 'desk', version: '1.0.0' }).connect(open()), 'shut out')
})

const python = process.env.MCP_PYTHON
const hasPackage = (): boolean => {
  try {
    execFileSync(python!, ['-c', 'import mcp.client.auth'])
    return true
  } catch {
    return false
  }
}

const program = `
import asyncio, sys
import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.oauth2 import AuthorizationCodeResult
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata
from urllib.parse import urlsplit, parse_qs

class Storage:
    tokens = None
    client = None
    async def get_tokens(self): return self.tokens
    async def set_tokens(self, tokens): self.tokens = tokens
    async def get_client_info(self): return self.client
    async def set_client_info(self, client): self.client = client

def say(*words): print(*words, flush=True)
async def read(): return (await asyncio.to_thread(sys.stdin.readline)).strip()
async def redirect(url): say("open", url)
async def callback():
    query = parse_qs(urlsplit(await read()).query)
    one = lambda name: query.get(name, [None])[0]
    return AuthorizationCodeResult(code=one("code"), state=one("state"), iss=one("iss"))

async def main(base):
    storage = Storage()
    metadata = OAuthClientMetadata(client_name="Desk", redirect_uris=["${redirectUrl}"])
    while True:
        provider = OAuthClientProvider(base + "/mcp", metadata, storage, redirect, callback)
        if storage.tokens:
            await provider._initialize()
            provider.context.token_expiry_time = 1
        try:
            async with asyncio.timeout(20):
                async with httpx2.AsyncClient(auth=provider, timeout=15) as http:
                    async with Client(streamable_http_client(base + "/mcp", http_client=http)) as client:
                        result = await client.call_tool("stats", {})
                        say("failed" if result.is_error else "used")
        except BaseException as error:
            say("failed", repr(error).replace("\\n", " ")[:300])
        if await read() == "end": return

asyncio.run(main(sys.argv[1]))
`

t.test('the one for Python', { skip: !python || !hasPackage() }, async t => {
  const child = spawn(python!, ['-c', program, base], { stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(() => child.kill())
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const say = (text: string): void => void child.stdin.write(`${text}\n`)
  const hear = async (): Promise<string> => String((await lines.next()).value)
  const opened = await hear()
  t.match(opened, /^open http/)
  say((await consent(opened.replace('open ', ''))).href)
  t.equal(await hear(), 'used')
  for (const next of fates.slice(0, 3)) {
    const standby = next === 'killed' ? await start() : web
    fate = next
    say('again')
    let heard = await hear()
    t.match(heard, /^failed/, `${next}: the answer does not arrive`)
    if (next === 'killed') {
      await web.exited
      web = standby
    }
    if (heard.startsWith('open')) t.fail('it had to log in again')
    say('again')
    heard = await hear()
    t.equal(heard, 'used', 'the same token again')
  }
  await disconnect()
  say('again')
  t.match(await hear(), /^(failed|open)/, 'shut out')
})
