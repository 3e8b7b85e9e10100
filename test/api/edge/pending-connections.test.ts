import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { createHttpServer } from '#api/edge/server.ts'
import { createApp } from '#api/app.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { listen } from '#test/support/start/listen.ts'

const backend = await createTestBackend(t)
const pendingPerAddress = 20
const server = createHttpServer(createApp(backend), {
  // Nothing but the bound closes a connection during the test.
  headersTimeout: 100_000,
  requestTimeout: 110_000,
  pendingPerAddress,
})
// As small as the open connections of the test allow, so that unbounded ones would fill it.
server.maxConnections = 40
const port = Number(new URL(await listen(t, server)).port)

/** A connection from an address of this machine. */
async function open(t: Test, localAddress = '127.0.0.1'): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port, localAddress })
  t.teardown(() => socket.destroy())
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

const halfHead = 'GET /health HTTP/1.1\r\nHost: x\r\n'
const health = async (socket: Socket): Promise<string> => {
  socket.write(`${halfHead}\r\n`)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  return answer.toString().split('\r\n', 1)[0]!
}

t.test('half heads of one address leave room for others and for itself', async t => {
  const halves: Socket[] = []
  for (let n = 0; n < 3 * server.maxConnections; n++) {
    const socket = await open(t)
    socket.write(halfHead)
    halves.push(socket)
  }
  t.equal(await health(await open(t, '127.0.0.2')), 'HTTP/1.1 200 OK')
  t.equal(await health(await open(t)), 'HTTP/1.1 200 OK', 'the newest is served, too')
  const newest = halves.at(-1)!
  newest.write('\r\n')
  const [answer] = (await once(newest, 'data')) as [Buffer]
  t.match(answer.toString(), /^HTTP\/1\.1 200 /, 'a slow head within the bound is served')
  for (const socket of halves) socket.destroy()
})

t.test('idle connections that are kept alive are not closed for others', async t => {
  const kept: Socket[] = []
  for (let n = 0; n < pendingPerAddress + 10; n++) {
    const socket = await open(t, '127.0.0.3')
    t.equal(await health(socket), 'HTTP/1.1 200 OK')
    kept.push(socket)
  }
  for (const socket of kept) t.equal(await health(socket), 'HTTP/1.1 200 OK')
})

t.test('a half head on a connection that was served before counts', async t => {
  const oldest = await open(t, '127.0.0.4')
  const closed = once(oldest, 'close')
  await health(oldest)
  oldest.write(halfHead)
  for (let n = 0; n < pendingPerAddress + 5; n++) {
    const socket = await open(t, '127.0.0.4')
    await health(socket)
    socket.write(halfHead)
  }
  await closed
  t.pass('the oldest was closed')
})

t.test('without a bound none is closed', async t => {
  const unbounded = createHttpServer(createApp(backend), { pendingPerAddress: null })
  await new Promise<void>(resolve => unbounded.listen(0, '127.0.0.1', resolve))
  t.teardown(() => unbounded.drain(0))
  t.equal(unbounded.listenerCount('connection'), server.listenerCount('connection') - 1)
})
