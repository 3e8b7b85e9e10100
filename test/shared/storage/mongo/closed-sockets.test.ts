import '#test/setup/env.ts'
import { subscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import t from 'tap'
import { withTimeout } from '#shared/core/with-timeout.ts'
import { openMongo } from '#shared/storage/mongo/connect.ts'
import { createTestConfig } from '#test/support/start/backend.ts'
import { startFaultProxy } from '#test/support/doubles/fault-proxy.ts'

t.test('a command on a socket that the server has just closed ends', async t => {
  const sockets: Socket[] = []
  subscribe(
    'net.client.socket',
    message => void sockets.push((message as { socket: Socket }).socket),
  )
  const { mongodbUri } = await createTestConfig(t)
  const gate = await startFaultProxy(t, mongodbUri)
  const mongo = await openMongo(gate.url)
  t.teardown(() => mongo.close())
  await mongo.ping()

  const { port } = new URL(gate.url)
  const used = sockets.filter(({ remotePort }) => remotePort === Number(port))
  const commands: Promise<string>[] = []
  for (const socket of used) {
    // Destroyed, and not yet closed: in between a write is refused without an error.
    socket.once('finish', () =>
      process.nextTick(() => {
        commands.push(
          mongo.memories.deleteMany({ vault: { $eq: 'none' } }).then(
            () => 'done',
            (error: Error) => error.name,
          ),
        )
      }),
    )
  }
  gate.shut()
  gate.open()
  const closed = used.map(socket => new Promise(resolve => socket.once('close', resolve)))
  await Promise.all(closed)
  const ends = await withTimeout(Promise.all(commands), 60_000, () => ['hangs'])
  t.ok(ends.length > 0)
  t.notOk(ends.includes('hangs'), ends.join())
})
