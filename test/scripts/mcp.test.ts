import { execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import t, { type Test } from 'tap'
import {
  buildKey,
  createTestClient,
  startTestApi,
  startJobWorkers,
} from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { findOldNode, installPackage } from '#test/support/start/installed-package.ts'
import { compileCache } from '#test/support/start/compile-cache.ts'
import { listen } from '#test/support/start/listen.ts'

const program = fileURLToPath(new URL('../../scripts/mcp.ts', import.meta.url))
const backend = await createTestBackend(t)
await startJobWorkers(backend)
const key = await buildKey(backend)
const { base } = await startTestApi(t, backend)

async function connect(t: Test, command: string, args: string[], key: string): Promise<Client> {
  const client = new Client({ name: 'test', version: '1.0.0' })
  const env = { PATH: process.env.PATH!, ...compileCache, MEMORY_VAULT_KEY: key }
  await client.connect(new StdioClientTransport({ command, args, env }))
  t.teardown(() => client.close())
  return client
}

async function remember(t: Test, client: Client): Promise<void> {
  await client.callTool({ name: 'store', arguments: { text: 'Die Größe ist 42.' } })
  const { structuredContent } = await client.callTool({
    name: 'search',
    arguments: { query: 'Größe', limit: 1 },
  })
  t.match(structuredContent, { memories: [{ content: 'Die Größe ist 42.' }] })
  t.ok(await client.readResource({ uri: 'vault://stats' }))
}

t.test('a client that starts programs has the same tools', async t => {
  const client = await connect(t, process.execPath, [program, '--url', `${base}/mcp/`], key)
  await remember(t, client)
  t.equal((await client.listTools()).tools.length, 15)
  const args = [program, '--url', base, '--tools', 'search,store']
  const reader = await connect(t, process.execPath, args, `${key}:read`)
  t.same(
    (await reader.listTools()).tools.map(({ name }) => name),
    ['search'],
  )
})

t.test('the key of the account and an own user id open the vault of that user', async t => {
  const args = [program, '--url', base, '--user', 'jürgen-17']
  await remember(t, await connect(t, process.execPath, args, key))
  const { status, body } = await createTestClient(base, key).get(
    `/v1/keys?external_id=${encodeURIComponent('jürgen-17')}`,
  )
  t.equal(status, 200)
  t.match(body.items, [{ external_id: 'jürgen-17' }])
})

t.test('the package has no dependencies, and its program runs on an older Node', async t => {
  const modules = t.testdir({})
  const { name, bin, dependencies } = await installPackage('scripts/bridge', modules)
  t.equal(dependencies, undefined)
  const main = join(modules, name, bin!['memory-vault-mcp']!)
  await remember(t, await connect(t, process.execPath, [main, '--url', base], key))
  const node = await findOldNode()
  if (!node) return t.pass('skipped: this machine has no Node older than the project’s')
  await remember(t, await connect(t, 'env', ['-u', 'NODE_OPTIONS', node, main, '--url', base], key))
})

t.test('a fault is the answer to its request', async t => {
  const ask = (url: string, key: string, ...lines: string[]): Promise<string> =>
    new Promise(resolve => {
      const options = { env: { PATH: process.env.PATH, ...compileCache, MEMORY_VAULT_KEY: key } }
      const child = execFile(process.execPath, [program, '--url', url], options, (_, out) =>
        resolve(out),
      )
      child.stdin!.end(lines.join('\n'))
    })
  const list = '{"jsonrpc":"2.0","id":7,"method":"tools/list"}'
  const wrong = JSON.parse(await ask(base, `mk_${'0'.repeat(32)}`, list)) as object
  t.match(wrong, { id: 7, error: { message: /Invalid Memory Key.*Bearer/ } })
  const away = JSON.parse(await ask('http://127.0.0.1:9', key, list)) as object
  t.match(away, { id: 7, error: { message: /cannot be reached/ } })
  const [garbage, listed] = (await ask(base, key, 'garbage', '', list)).trim().split('\n')
  t.match(JSON.parse(garbage!), { id: null, error: { code: -32_700 } })
  t.match(JSON.parse(listed!), { id: 7, result: { tools: [{ name: 'search' }] } })
})

t.test('a request that is cancelled is aborted, and not answered', async t => {
  const server = createServer()
  const child = spawn(process.execPath, [program, '--url', await listen(t, server)], {
    env: { PATH: process.env.PATH, ...compileCache, MEMORY_VAULT_KEY: key },
  })
  t.teardown(() => child.kill())
  const exited = once(child, 'exit')
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"stats"}}\n')
  const [, response] = (await once(server, 'request')) as [unknown, NodeJS.EventEmitter]
  const closed = once(response, 'close')
  server.on('request', (_, other) => other.writeHead(202).end())
  child.stdin.write(
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}\n',
  )
  await closed
  child.stdin.end('not JSON\n')
  t.match(await answers.next(), { value: /-32700/ }, 'the first answer is to another line')
  t.match(await exited, [0])
})

t.test('what it needs, it says', async t => {
  const run = (...args: string[]) =>
    spawnSync(process.execPath, [program, ...args], {
      env: { PATH: process.env.PATH, ...compileCache },
      encoding: 'utf8',
    })
  t.match(run('--help'), { status: 0, stdout: /MEMORY_VAULT_KEY/ })
  t.match(run(), { status: 2, stdout: '', stderr: /No Memory Key/ })
  t.match(run('--key', 'mk_x', '--url', 'nonsense'), { status: 2, stderr: /not a valid URL/ })
  t.match(run('--port', '1'), { status: 2, stderr: /--port/ })
})
