import { once } from 'node:events'
import { connect, type AddressInfo } from 'node:net'
import t from 'tap'
import { createApp } from '#api/edge/app.ts'
import { createHttpServer } from '#api/edge/server.ts'
import { buildKey } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'
import { sendRaw } from '#test/support/raw-http.ts'
import { waitUntil } from '#test/support/wait-until.ts'

const backend = await createTestBackend(t)
const key = await buildKey(backend)
// Short enough to wait for, long enough for a busy machine.
const server = createHttpServer(createApp(backend), {
  headersTimeout: 800,
  requestTimeout: 30_000,
  connectionsCheckingInterval: 50,
  bodyTimeoutMs: 1_000,
  idleTimeoutMs: 1_200,
  lingerMs: 2_500,
})
await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
t.teardown(() => server.drain(0))
const { port } = server.address() as AddressInfo
const json = JSON.stringify({ query: 'kitten', limit: 3 })

function head(path: string, length: number, headers: Record<string, string> = {}): string {
  const all = {
    Host: 'x',
    'Content-Type': 'application/json',
    'Content-Length': String(length),
    ...headers,
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`)
  return `POST ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`
}
const mine = { Authorization: `Bearer ${key}` }
const statuses = ({ answers }: { answers: { status: number }[] }) =>
  answers.map(({ status }) => status)

const connections = (): Promise<number> =>
  new Promise((resolve, reject) =>
    server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  )

/** Connections that say something and then neither go on nor go away, whatever they hear. */
function hold(count: number, said: string): () => void {
  const sockets = Array.from({ length: count }, () => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    socket.on('data', () => {}).on('error', () => {})
    if (said) socket.write(said)
    return socket
  })
  return () => sockets.forEach(socket => socket.destroy())
}

t.test('401: who is refused and sends no more of the body is hung up on', async t => {
  const talk = await sendRaw(port, [`${head('/v1/memory/search', 500)}{`])
  t.same(statuses(talk), [401])
  t.ok(talk.closedByServer, `closed after ${Math.round(talk.ms)} ms`)

  const release = hold(100, `${head('/v1/memory/search', 500)}{`)
  t.teardown(release)
  await waitUntil('a hundred are connected', async () => (await connections()) >= 100)
  await waitUntil('none of them is left', async () => (await connections()) === 0)
})

t.test('401: a body that drips after its answer is not read for long', async t => {
  // More than half a minute of them.
  const drip = Array.from({ length: 2_000 }, () => ' ')
  const talking = sendRaw(port, [head('/v1/memory/search', 500), ...drip], {
    pauseMs: 20,
  })
  await waitUntil('it is connected', async () => (await connections()) > 0)
  // Sooner than `requestTimeout`.
  await waitUntil(
    'it is closed, though more comes',
    async () => (await connections()) === 0,
    20_000,
  )
  t.same(statuses(await talking), [401])
})

t.test('401: a body whose rest comes costs nobody the connection', async t => {
  const talk = await sendRaw(
    port,
    [
      head('/v1/memory/search', json.length) + json.slice(0, 5),
      json.slice(5) + head('/v1/memory/search', json.length, mine) + json,
    ],
    { pauseMs: 50, answersMax: 2 },
  )
  t.same(statuses(talk), [401, 200])
})

t.test('408: a key does not buy more time for a body', async t => {
  const talk = await sendRaw(port, [head('/v1/memory/search', 500, mine) + json])
  t.same(statuses(talk), [408])
  t.match(JSON.parse(talk.answers[0]!.body), { error: /too long to arrive/ })
  t.ok(talk.closedByServer && talk.ms >= 1_000, `${Math.round(talk.ms)} ms`)
})

t.test('200, then 408: an answer that is owed comes first', async t => {
  const whole = head('/v1/memory/search', json.length, mine) + json
  const talk = await sendRaw(port, [whole + head('/v1/memory/search', 500, mine)])
  t.same(statuses(talk), [200, 408])
  t.ok(talk.closedByServer)
})

t.test('a body that may be large has more time', async t => {
  const exchange = JSON.stringify({ messages: [{ role: 'user', content: 'said slowly' }] })
  const call = JSON.stringify({ model: 'no-such-model', messages: [{ role: 'user', content: '' }] })
  const lines = { ...mine, 'Content-Type': 'application/x-ndjson' }
  await Promise.all(
    (
      [
        ['/v1/memory/ingest', exchange, mine, 202],
        [
          '/v1/memory/upload',
          '{"content":"sent slowly"}\n',
          { ...lines, Prefer: 'respond-async' },
          202,
        ],
        ['/v1/chat/completions', call, mine, 400],
      ] as const
    ).map(async ([path, body, headers, status]) => {
      const pieces = [head(path, body.length, headers) + body.slice(0, 5), body.slice(5)]
      const talk = await sendRaw(port, pieces, { pauseMs: 2_000, answersMax: 1 })
      t.same(statuses(talk), [status], path)
    }),
  )
})

t.test('408: who says nothing and never goes away is gone all the same', async t => {
  const release = hold(50, '')
  t.teardown(release)
  await waitUntil('they are connected', async () => (await connections()) >= 50)
  await waitUntil('none of them is left', async () => (await connections()) === 0)
  t.pass('no half of a connection stays')
})

t.test('200: connections kept open for nothing make room', async t => {
  server.maxConnections = 20
  t.teardown(() => (server.maxConnections = 2_000))
  const release = hold(20, 'GET /health HTTP/1.1\r\nHost: x\r\n\r\n')
  t.teardown(release)
  await waitUntil('all places are taken', async () => (await connections()) === 20)
  const refused = connect({ port, host: '127.0.0.1' }).on('error', () => {})
  await once(refused, 'close')
  await waitUntil('there is room', async () => (await connections()) < 20)
  const { answers } = await sendRaw(port, ['GET /health HTTP/1.1\r\nHost: x\r\n\r\n'], {
    answersMax: 1,
  })
  t.equal(answers[0]?.status, 200)
})
