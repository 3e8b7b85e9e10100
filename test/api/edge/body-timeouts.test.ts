import { once } from 'node:events'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { createApp } from '#api/app.ts'
import { createHttpServer, type ConnectionLimits } from '#api/edge/server.ts'
import { buildKey, patientLimits } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { sendRaw } from '#test/support/start/raw-http.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { listen } from '#test/support/start/listen.ts'

const backend = await createTestBackend(t)
const key = await buildKey(backend)

/** A server on which all but what a test is about has time. */
async function serve(t: Test, limits: Partial<ConnectionLimits>) {
  const server = createHttpServer(createApp(backend), {
    ...patientLimits,
    connectionsCheckingInterval: 50,
    ...limits,
  })
  let opened = 0
  server.on('connection', () => opened++)
  const port = Number(new URL(await listen(t, server)).port)
  const connections = (): Promise<number> =>
    new Promise((resolve, reject) =>
      server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
    )
  return { server, port, connections, opened: () => opened }
}

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

/** Connections that say something and then neither go on nor go away, whatever they hear. */
function hold(port: number, count: number, said: string): () => void {
  const sockets = Array.from({ length: count }, () => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    socket.on('data', () => {}).on('error', () => {})
    if (said) socket.write(said)
    return socket
  })
  return () => sockets.forEach(socket => socket.destroy())
}

t.test('401: who is refused and sends no more of the body is hung up on', async t => {
  const { port, connections, opened } = await serve(t, { idleTimeoutMs: 200 })
  const talk = await sendRaw(port, [`${head('/v1/memory/search', 500)}{`])
  t.same(statuses(talk), [401])
  t.ok(talk.closedByServer, `closed after ${Math.round(talk.ms)} ms`)

  const release = hold(port, 100, `${head('/v1/memory/search', 500)}{`)
  t.teardown(release)
  await waitUntil('a hundred have connected', () => opened() > 100)
  await waitUntil('none of them is left', async () => (await connections()) === 0)
})

t.test('401: a body that drips after its answer is not read for long', async t => {
  const { port, connections, opened } = await serve(t, { lingerMs: 500 })
  // The last of these would come after four minutes.
  const drip = Array.from({ length: 12_000 }, () => ' ')
  const talking = sendRaw(port, [head('/v1/memory/search', 50_000), ...drip], {
    pauseMs: 20,
  })
  await waitUntil('it has connected', () => opened() > 0)
  await waitUntil('it is closed, though more comes', async () => (await connections()) === 0)
  t.same(statuses(await talking), [401])
})

t.test('401: a body whose rest comes costs nobody the connection', async t => {
  const { port } = await serve(t, {})
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
  const { port } = await serve(t, { bodyTimeoutMs: 300 })
  const talk = await sendRaw(port, [head('/v1/memory/search', 500, mine) + json])
  t.same(statuses(talk), [408])
  t.match(JSON.parse(talk.answers[0]!.body), { error: /too long to arrive/ })
  t.ok(talk.closedByServer && talk.ms >= 290, `${Math.round(talk.ms)} ms`)
})

t.test('200, then 408: an answer that is owed comes first', async t => {
  const { port } = await serve(t, { bodyTimeoutMs: 300 })
  const whole = head('/v1/memory/search', json.length, mine) + json
  const talk = await sendRaw(port, [whole + head('/v1/memory/search', 500, mine)])
  t.same(statuses(talk), [200, 408])
  t.ok(talk.closedByServer)
})

t.test('a body that may be large has more time', async t => {
  const exchange = JSON.stringify({ messages: [{ role: 'user', content: 'said slowly' }] })
  const call = JSON.stringify({ model: 'no-such-model', messages: [{ role: 'user', content: '' }] })
  const lines = { ...mine, 'Content-Type': 'application/x-ndjson' }
  const requests = [
    ['/v1/memory/ingest', exchange, mine],
    ['/v1/memory/upload', '{"content":"sent slowly"}\n', { ...lines, Prefer: 'respond-async' }],
    ['/v1/chat/completions', call, mine],
  ] as const
  let answered: number[][] = []
  // The key is looked up within the time of a small body: on a machine that stands still once more, with a longer one.
  for (const bodyTimeoutMs of [300, 3_000, 12_000]) {
    const { port } = await serve(t, { bodyTimeoutMs })
    answered = await Promise.all(
      requests.map(async ([path, body, headers]) => {
        const pieces = [head(path, body.length, headers) + body.slice(0, 5), body.slice(5)]
        return statuses(
          await sendRaw(port, pieces, { pauseMs: bodyTimeoutMs + 700, answersMax: 1 }),
        )
      }),
    )
    if (!answered.flat().includes(408)) break
  }
  t.same(answered, [[202], [202], [400]])
})

t.test('408: who says nothing and never goes away is gone all the same', async t => {
  const { port, connections, opened } = await serve(t, { headersTimeout: 300 })
  const release = hold(port, 50, '')
  t.teardown(release)
  await waitUntil('they have connected', () => opened() === 50)
  await waitUntil('none of them is left', async () => (await connections()) === 0)
  t.pass('no half of a connection stays')
})

t.test('200: connections kept open for nothing make room', async t => {
  const { server, port, connections } = await serve(t, {})
  server.maxConnections = 20
  const release = hold(port, 20, 'GET /health HTTP/1.1\r\nHost: x\r\n\r\n')
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
