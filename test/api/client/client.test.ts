import { execFile } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import type * as Client from '#api/client/vault.ts'
import { buildKey, startTestApi, startJobWorkers } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { findOldNode, installPackage } from '#test/support/start/installed-package.ts'

const backend = await createTestBackend(t)
await startJobWorkers(backend)
const key = await buildKey(backend)
const { base } = await startTestApi(t, backend)
const folder = t.testdir({ node_modules: {} })
const manifest = await installPackage('api/client', join(folder, 'node_modules'))
// As a person who installs the package gets it: JavaScript.
const built = join(folder, 'node_modules', manifest.name, 'dist/client/vault.js')
const { createVault, vaultClient, VaultError } = (await import(
  pathToFileURL(built).href
)) as typeof Client
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
})

t.test('an export is text, also one of a single line, or lines', async t => {
  const body = { name: 'another vault' }
  const { key } = await vault.call('POST /v1/keys', { body })
  const other = vaultClient(base, key)
  t.equal(await other.call('GET /v1/memory/export'), '')
  await other.call('POST /v1/memory/upload', { body: '{"content":"eine Zeile: Größe"}\n' })
  const text: string = await other.call('GET /v1/memory/export')
  t.match(text, /^\{.*"content":"eine Zeile: Größe".*\}\n$/)
  await other.call('POST /v1/memory/upload', { body: '{"content":"another"}\n' })
  const contents: string[] = []
  for await (const line of other.lines('GET /v1/memory/export')) contents.push(line.content)
  t.same(contents.toSorted(), ['another', 'eine Zeile: Größe'])
  for await (const line of other.lines('GET /v1/memory/export')) {
    t.ok(line.id, 'reading may end early')
    break
  }
})

t.test('a refusal is an error with its status and hint', async t => {
  const refused = await vault
    .call('POST /v1/memory/search', { body: { query: 'x', limit: 0 } })
    .catch((error: unknown) => error)
  t.ok(refused instanceof VaultError)
  t.match(refused, {
    status: 400,
    message: /POST \/v1\/memory\/search: 400 .*limit/,
    requestId: /^[0-9a-f-]{36}$/,
    retryAfter: undefined,
  })
  t.match(new VaultError('GET /', 429, {}, new Headers({ 'retry-after': '7' })), { retryAfter: 7 })
  const stranger = vaultClient(base, 'mk_00000000000000000000000000000000')
  const unknown = await stranger.call('GET /v1/memory/stats').catch((error: unknown) => error)
  t.match(unknown, { status: 401, hint: /Bearer/ })
  await t.rejects(stranger.lines('GET /v1/memory/export').next(), VaultError)
})

t.test('every endpoint is a method, whose fields go where the contract has them', async t => {
  const vault = createVault(base, key)
  const messages = [{ role: 'user' as const, content: 'The kayak is yellow.' }]
  const told = await vault.ingest({ messages, session_id: 'boats', wait: true })
  t.equal((await vault.readOperation({ id: told.operation_id })).state, 'done')
  t.match((await vault.search({ query: 'kayak', session_id: 'boats' })).memories, [
    { content: messages[0]!.content },
  ])
  const ada = vault.forUser('ada of the methods')
  await ada.upload({ lines: [{ content: 'Ada likes rain.' }], session_id: 'weather' })
  t.match((await ada.listSessions()).items, [{ session_id: 'weather' }])
  const contents: string[] = []
  for await (const { content } of ada.exportVault()) contents.push(content)
  t.same(contents, ['Ada likes rain.'])
  const refused = vault.search({ query: '' })
  const error = await refused.catch((error: unknown) => error)
  t.match(error, { status: 400, message: /POST \/v1\/memory\/search: 400 .+/ })
})

t.test('what may work later and does nothing twice is sent again, under the same key', async t => {
  const seen: (string | undefined)[] = []
  const statuses = [503, 429, 0, 409, 202]
  const server = createServer((request, response) => {
    seen.push(request.headers['idempotency-key'] as string | undefined)
    const status = statuses[seen.length - 1]!
    if (status === 0) return void request.socket.destroy()
    response.writeHead(status, { 'content-type': 'application/json', 'retry-after': '0' })
    response.end(JSON.stringify(status === 202 ? { accepted: true } : { error: 'later' }))
  })
  await new Promise<void>(resolve => void server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  const { port } = server.address() as AddressInfo
  const flaky = createVault(`http://127.0.0.1:${port}`, 'mk_x')
  t.match(await flaky.ingest({ messages: [] }), { accepted: true })
  t.equal(seen.length, 5)
  t.ok(seen[0])
  t.equal(new Set(seen).size, 1, 'one key')
  statuses.push(502)
  await t.rejects(
    flaky.embed({ model: 'm', input: 'x' }),
    /502/,
    'what has no key is not sent twice',
  )
  statuses.push(409)
  await t.rejects(flaky.ingest({ messages: [] }, { idempotencyKey: 'mine' }), /409/)
  t.equal(seen.at(-1), 'mine')
})

t.test('a call ends with its signal, and after its time', async t => {
  const server = createServer(() => {})
  await new Promise<void>(resolve => void server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const impatient = createVault(address, 'mk_x', { timeout: 0.01, retries: 0 })
  await t.rejects(impatient.stats(), { name: 'TimeoutError' })
  const signal = AbortSignal.abort(new Error('enough'))
  await t.rejects(createVault(address, 'mk_x').stats({}, { signal }), { message: 'enough' })
})

t.test('the package has no dependencies, and runs on an older Node', async t => {
  t.equal(manifest.dependencies, undefined)
  t.equal(manifest.engines.node, '>=18')
  const node = await findOldNode()
  if (!node) return t.pass('skipped: this machine has no Node older than the project’s')
  mkdirSync(join(folder, 'program'))
  writeFileSync(
    join(folder, 'program/index.mjs'),
    `import { createVault } from 'memory-vault-client'
     const vault = createVault(process.env.BASE_URL, process.env.MEMORY_KEY)
     const { memories } = await vault.stats()
     const lines = []
     for await (const { content } of vault.lines('GET /v1/memory/export')) lines.push(content)
     console.log(memories, lines.join('|'))`,
  )
  const { stdout } = await promisify(execFile)(
    'env',
    ['-u', 'NODE_OPTIONS', node, join(folder, 'program/index.mjs')],
    { env: { PATH: process.env.PATH, BASE_URL: base, MEMORY_KEY: key } },
  )
  t.match(stdout, /^3 .*a line/)
})

t.test('a header is sent as UTF-8, whatever it is written in', async t => {
  for (const session of ['東京', 'Café']) {
    const messages = [{ role: 'user' as const, content: `The tram of ${session} is late.` }]
    const body = { messages, session_id: session }
    await vault.call('POST /v1/memory/ingest', { query: { wait: true }, body })
    const { memories } = await vault.call('POST /v1/memory/search', {
      headers: { 'x-session-id': session },
      body: { query: 'tram', limit: 5 },
    })
    t.match(memories, [{ content: messages[0]!.content }])
  }
})

t.test('a client of one user works on that vault, whatever the id is written in', async t => {
  const user = vaultClient(base, key, { user: 'René 京' })
  const messages = [{ role: 'user' as const, content: 'Only mine.' }]
  await user.call('POST /v1/memory/ingest', { query: { wait: true }, body: { messages } })
  t.equal((await user.call('GET /v1/memory/stats')).memories, 1)
  const { items } = await vault.call('GET /v1/keys', { query: { external_id: 'René 京' } })
  t.match(items, [{ external_id: 'René 京' }])
})
