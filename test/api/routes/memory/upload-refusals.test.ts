import t from 'tap'
import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import type { Backend } from '#shared/backend.ts'
import { countTokens } from '#shared/core/tokens.ts'
import { startTestApi, type TestClient } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { setBalance, setPaymentMethod } from '#test/support/checks/alter.ts'
import { insertStagedFile } from '#test/support/checks/alter-jobs.ts'
import { countRows } from '#test/support/checks/observe.ts'
import {
  createKeyedClient,
  exportLines,
  fileOf,
  uploadFile,
} from '#test/support/start/memory-file.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base, newClient } = await startService(t, { jobs: ['upload'] })

const textsOf = async (client: TestClient): Promise<string[]> =>
  (await exportLines(client)).map(({ content }) => content)
const stagedIn = (service: Backend): Promise<number> => countRows(service, 'long_operations')

const at = 1_700_000_000_000
const said = (content: string, n = 0, rest: object = {}) => ({
  content,
  timestamp: at + n * 60_000,
  ...rest,
})

t.test('400: no lines, or no file', async t => {
  const client = await newClient()
  for (const body of ['', '\n\r\n  \n', '\uFEFF']) {
    const answer = await uploadFile(client, body)
    t.match(answer, { status: 400, body: { error: 'The file has no lines' } })
  }
  t.equal(await stagedIn(backend), 0)
})

t.test('400: broken compression, an unknown embedding model', async t => {
  const client = await newClient()
  const packed = gzipSync(fileOf([said('x')]))
  const cut = packed.subarray(0, packed.length - 9)
  for (const [body, headers] of [
    ['{"content":"x"}', { 'content-encoding': 'gzip' }],
    [cut, { 'content-encoding': 'gzip' }],
    ['{"content":"x"}', { 'x-embedding-model': 'nonsense' }],
  ] as [string | Uint8Array, Record<string, string>][]) {
    t.equal(
      (await uploadFile(client, body, headers)).status,
      400,
      JSON.stringify(headers).slice(0, 60),
    )
  }
  t.equal(await stagedIn(backend), 0)
})

t.test('402: no card on file, or nothing left on the account', async t => {
  const client = await newClient()
  const { account } = await client.caller()
  await setPaymentMethod(backend, account, null)
  t.match(await uploadFile(client, [said('x')]), { status: 402, body: { error: /card/ } })
  await setPaymentMethod(backend, account, 'card')
  await setBalance(backend, { account }, 0)
  t.equal((await uploadFile(client, [said('x')])).status, 402)
  await setBalance(backend, { account }, 1_000)
  t.match(await uploadFile(client, [said('The boiler')]), {
    status: 200,
    body: { status: 'complete' },
  })
  t.equal((await client.caller()).keyRow.balance, 1000 - countTokens('The boiler'))
})

t.test('413: the lines or the bytes pass their limit, and nothing is stored', async t => {
  const client = await newClient()
  const many = await uploadFile(client, Array.from({ length: 10_001 }, () => '{}').join('\n'))
  t.match(many, { status: 413, body: { error: 'The file has more than 10,000 lines' } })
  const bomb = gzipSync(Buffer.alloc(65 * 1024 * 1024, `${'{"content":"a"}'.padEnd(9_999)}\n`))
  const large = await uploadFile(client, bomb, { 'content-encoding': 'gzip' })
  t.match(large, { status: 413, body: { error: 'The file is larger than 64 MiB' } })

  t.same(await textsOf(client), [])
  t.equal(await stagedIn(backend), 0)
})

t.test('200: a line over 256 KiB is faulty and does not sink the file', async t => {
  const client = await newClient()
  const line = `{"content":"${'x '.repeat(128 * 1024 - 7)}"}`
  const long = `{"content":"${'x '.repeat(128 * 1024)}"}`
  const { status, body } = await uploadFile(client, `${long}\n{"content":"short"}\n${line}`)
  t.equal(status, 200)
  t.match(body, { status: 'partial', stats: { inputItems: 3, failed: 1 } })
  t.match(body.errors, [{ line: 1, error: 'longer than 256 KiB' }])
  t.equal(body.errors.length, 1, 'a line of the very limit passes')
})

t.test('400: lines of an export say which endpoint takes them', async t => {
  const client = await newClient()
  await uploadFile(client, [said('a memory')])
  const [line] = (await client.get('/v1/memory/export')).body
  const refused = await uploadFile(client, [line])
  t.match(refused, { status: 400, body: { hint: /line 1: .*POST \/v1\/memory\/import/ } })
})

t.test('413: the connection goes on after a file that was too long', async t => {
  const client = await newClient()
  const url = new URL(base)
  const socket = connect(Number(url.port), url.hostname)
  const body = Array.from({ length: 10_500 }, () => '{}').join('\n')
  socket.write(
    `POST /v1/memory/upload HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${client.key}\r\n` +
      `Content-Type: text/plain\r\nContent-Length: ${body.length}\r\n\r\n${body}` +
      'GET /health HTTP/1.1\r\nHost: x\r\n\r\n',
  )
  let heard = ''
  socket.setEncoding('utf8').on('data', text => (heard += text))
  await waitUntil(
    'both answers',
    () => heard.includes('HTTP/1.1 413') && heard.includes('HTTP/1.1 200'),
  )
  socket.destroy()
  t.match(heard, /413[^]*200/)
})

t.test('415: other types and encodings', async t => {
  const client = await newClient()
  for (const headers of [
    { 'content-type': 'multipart/form-data; boundary=x' },
    { 'content-encoding': 'br' },
  ]) {
    t.equal((await uploadFile(client, [said('x')], headers)).status, 415)
  }
})

t.test('502: an embedding model that does not answer', async t => {
  const env = { EMBEDDINGS: 'local', OPENAI_API_KEY: 'x', OPENAI_BASE_URL: 'http://127.0.0.1:9/v1' }
  const service = await createTestBackend(t, { env })
  const client = await createKeyedClient(service, (await startTestApi(t, service)).base)
  const { status } = await uploadFile(client, [said('x')], { 'x-embedding-model': 'openai/absent' })
  t.equal(status, 502)
  t.equal(await stagedIn(service), 0)
})

t.test('a client that leaves in the middle leaves nothing behind', async t => {
  const client = await newClient()
  const url = new URL(base)
  const lines = fileOf(Array.from({ length: 300 }, (_, n) => said(`line ${n}`, n)))
  for (const encoding of ['identity', 'gzip']) {
    const whole = encoding === 'gzip' ? gzipSync(lines, { level: 0 }) : Buffer.from(lines)
    const socket = connect(Number(url.port), url.hostname)
    socket.write(
      `POST /v1/memory/upload HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${client.key}\r\n` +
        `Content-Type: text/plain\r\nContent-Encoding: ${encoding}\r\nContent-Length: ${whole.length}\r\n\r\n`,
    )
    socket.write(whole.subarray(0, whole.length - 100))
    await waitUntil('staging', async () => (await countRows(backend, 'operation_steps')) > 0)
    socket.destroy()
    await waitUntil('nothing staged', async () => (await stagedIn(backend)) === 0)
  }
  t.same(await textsOf(client), [])
})

t.test('what a process that died had staged goes with the next file', async t => {
  const client = await newClient()
  const { vault } = (await client.caller()).scope
  await insertStagedFile(backend, vault, '11 minutes')
  await insertStagedFile(backend, vault, '1 minute')
  await uploadFile(client, [said('x')])
  t.equal(await stagedIn(backend), 1, 'what may still be arriving stays')
})
