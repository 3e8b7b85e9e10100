import { createServer, type IncomingMessage } from 'node:http'
import { json } from 'node:stream/consumers'
import { vaultClient, VaultError, type VaultClient } from '#api/client/client.ts'
import { exitWithUsage, parseOptions } from '#scripts/command-line.ts'
import { repeat, uploadWhole } from '#scripts/lab/scores/measure.ts'
import { resolveConnection } from '#scripts/service-connection.ts'

const help = `Usage: npm run lab -- leaderboard [--port <number>]

Serves a vault in the form that public leaderboards ask for, on this machine: POST /add
{text or messages, user_id, metadata?}, POST /search {query, user_id, limit?, scope?} with results of {id, memory, score},
DELETE /reset, POST /wait. A result's id is metadata.beliefId where /add had one. Each user_id has a vault of its own.

  --port <number>       8080 when missing
  --base-url, --key     the service and the key that was made with the account (BASE_URL, MEMORY_KEY), else the one that runs here
  --help                this text
`

const values = parseOptions(help, {
  port: { type: 'string', default: '8080' },
  'base-url': { type: 'string' },
  key: { type: 'string' },
})
const faults: string[] = []
const { baseUrl, key } = resolveConnection(values, { env: process.env, faults })
if (!/^\d{1,5}$/.test(values.port)) faults.push('--port is a number')
if (faults.length > 0) exitWithUsage(faults, help)

type Request = {
  text?: string
  messages?: { role: 'user' | 'assistant'; content: string }[]
  user_id?: string
  metadata?: Record<string, unknown>
  query?: string
  limit?: number
  top_k?: number
  scope?: string
}

/** Users of this board, told from those of the account by the beginning of their ids. */
const prefix = 'leaderboard/'
const owner = vaultClient(baseUrl, key)
const vaultOf = (user = 'default'): VaultClient =>
  vaultClient(baseUrl, key, { user: prefix + user })

const routes: Record<string, (request: Request) => Promise<object>> = {
  'POST /add': async ({ text, messages, user_id: user, metadata = {} }) => {
    const said = messages ?? [{ role: 'user' as const, content: text ?? '' }]
    const kept = Object.entries(metadata).filter(([, value]) =>
      ['string', 'number', 'boolean'].includes(typeof value),
    )
    const lines = said.map(({ role, content }) =>
      JSON.stringify({ role, content, metadata: Object.fromEntries(kept) }),
    )
    await uploadWhole(vaultOf(user), lines.join('\n'))
    return { ok: true }
  },
  'POST /search': async ({ query = '', user_id: user, limit, top_k: top, scope }) => {
    const filter = scope === undefined ? {} : { metadata: { scope } }
    const body = { query, limit: limit ?? top ?? 20, ...filter }
    const { memories } = await repeat(() => vaultOf(user).call('POST /v1/memory/search', { body }))
    const results = memories.map(({ id, content, score, metadata = {} }) => {
      return { id: String(metadata.beliefId ?? id), memory: content, score, metadata }
    })
    return { results }
  },
  'POST /wait': async () => ({ ok: true }),
  'DELETE /reset': async () => {
    for (let cursor: string | null | undefined; cursor !== null;) {
      const page = await owner.call('GET /v1/keys', { query: { ...(cursor && { cursor }) } })
      for (const { external_id: user } of page.items) {
        if (!user?.startsWith(prefix)) continue
        await repeat(() => vaultClient(baseUrl, key, { user }).call('DELETE /v1/memory'))
      }
      cursor = page.next_cursor
    }
    return { ok: true }
  },
}

async function answer(request: IncomingMessage): Promise<{ status: number; body: object }> {
  const route = routes[`${request.method} ${request.url}`]
  if (!route) return { status: 404, body: { error: `${request.method} ${request.url}` } }
  try {
    const isEmpty = request.method === 'DELETE' || request.headers['content-length'] === '0'
    return { status: 200, body: await route(isEmpty ? {} : ((await json(request)) as Request)) }
  } catch (error) {
    const status = error instanceof VaultError ? error.status : 400
    return { status, body: { error: (error as Error).message } }
  }
}

const server = createServer((request, response) => {
  void answer(request).then(({ status, body }) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
})
server.listen(Number(values.port), '127.0.0.1', () => {
  const { port } = server.address() as { port: number }
  console.log(`http://127.0.0.1:${port}`)
})
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close())
