import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath, pathToFileURL } from 'node:url'
import t from 'tap'
import type * as Client from '#api/client/client.ts'
import { buildKey, startTestApi, startJobWorkers } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const backend = await createTestBackend(t)
await startJobWorkers(backend)
const key = await buildKey(backend)
const { base } = await startTestApi(t, backend)
const folder = t.testdir()
// `env`, because the test runner puts its loaders into every Node process it sees start.
execFileSync(
  'env',
  ['-u', 'NODE_OPTIONS', process.execPath, 'node_modules/typescript/bin/tsc'].concat(
    ['-p', 'scripts/client.tsconfig.json'],
    ['--outDir', folder],
  ),
  { cwd: root },
)
// As whoever installs the package gets it: JavaScript.
const built = pathToFileURL(`${folder}/client/client.js`).href
const { vaultClient, VaultError } = (await import(built)) as typeof Client
const vault = vaultClient(`${base}/`, key)

t.test('every part of a request arrives, and the answer comes back typed', async t => {
  const messages = [{ role: 'user' as const, content: 'My cat is called Ada.' }]
  const told = await vault.call('POST /v1/memory/ingest', {
    query: { wait: true },
    body: { messages, session_id: 'Größe' },
  })
  t.equal(told.queued, false)
  const { operation_id: id } = told
  const operation = await vault.call('GET /v1/operations/:id', { params: { id } })
  t.equal(operation.operation_id, id)
  const { memories } = await vault.call('POST /v1/memory/search', {
    headers: { 'x-session-id': 'Gr%C3%B6%C3%9Fe' },
    body: { query: 'cat', limit: 1 },
  })
  t.same(memories, [], 'another session')
  const uploaded = await vault.call('POST /v1/memory/upload', { body: '{"content":"a line"}\n' })
  t.match(uploaded, { stats: { stored: 1 } })
  t.match(await vault.call('GET /v1/memory/export'), /"a line"|"content":"a line"/)
})

t.test('a refusal is an error with its status and hint', async t => {
  const refused = await vault
    .call('POST /v1/memory/search', { body: { query: 'x', limit: 0 } })
    .catch((error: unknown) => error)
  t.ok(refused instanceof VaultError)
  t.match(refused, { status: 400, message: /POST \/v1\/memory\/search: 400 .*limit/ })
  const stranger = vaultClient(base, 'mk_00000000000000000000000000000000')
  const unknown = await stranger.call('GET /v1/memory/stats').catch((error: unknown) => error)
  t.match(unknown, { status: 401, hint: /Bearer/ })
})

t.test('the package exports what the build writes', async t => {
  const { exports, scripts } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8')) as {
    exports: { './client': { types: string; default: string } }
    scripts: { prepack: string }
  }
  t.match(scripts.prepack, /client\.tsconfig\.json/)
  t.match(exports['./client'], { default: './dist/client/client.js' })
  t.match(readFileSync(`${folder}/client/client.d.ts`, 'utf8'), /contract\/types/)
})
