import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { buildKey, startTestApi, startJobWorkers } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'

const program = fileURLToPath(new URL('../../scripts/mcp.ts', import.meta.url))
const backend = await createTestBackend(t)
await startJobWorkers(backend)
const key = await buildKey(backend)
const { base } = await startTestApi(t, backend)

t.test('a client that starts programs has the same tools', async t => {
  const client = new Client({ name: 'test', version: '1.0.0' })
  await client.connect(
    new StdioClientTransport({
      command: process.execPath,
      args: [program, '--url', `${base}/`],
      env: { PATH: process.env.PATH!, MEMORY_VAULT_KEY: key },
    }),
  )
  t.teardown(() => client.close())
  const messages = [{ role: 'user', content: 'My cat is called Ada.' }]
  await client.callTool({ name: 'store', arguments: { messages } })
  const { structuredContent } = await client.callTool({
    name: 'search',
    arguments: { query: 'what is my cat called?', limit: 1 },
  })
  t.match(structuredContent, { memories: [{ content: /Ada/ }] })
  t.equal((await client.listTools()).tools.length, 12)
})

t.test('what it needs, it says', async t => {
  const run = (...args: string[]) =>
    spawnSync(process.execPath, [program, ...args], {
      env: { PATH: process.env.PATH },
      encoding: 'utf8',
    })
  t.match(run('--help'), { status: 0, stdout: /MEMORY_VAULT_KEY/ })
  t.match(run(), { status: 2, stdout: '', stderr: /No Memory Key/ })
  t.match(run('--key', 'mk_x', '--url', 'nonsense'), { status: 2, stderr: /not a valid URL/ })
  t.match(run('--port', '1'), { status: 2, stderr: /--port/ })
})
