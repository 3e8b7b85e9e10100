import { createServer, type AddressInfo, type Socket } from 'node:net'
import pg from 'pg'
import type { Test } from 'tap'
import { atPort } from '#test/support/doubles/fault-proxy.ts'

/** Letters of messages of PostgreSQL's protocol, version 3. */
const [query, sync, terminate, readyForQuery] = [0x51, 0x53, 0x58, 0x5a]
const idle = 0x49

type Server = { client: pg.Client; stream: Socket; user: ((bytes: Buffer) => void) | null }

/**
 * Starts a pooler in front of a database, with some connections of the server for all clients. In transaction mode a
 * client gets the one that was longest unused for each transaction, and prepared statements, settings and LISTEN stay
 * with that connection: as PgBouncer before 1.21, at its most unlucky.
 */
export async function startPoolerDouble(
  t: Test,
  databaseUrl: string,
  { mode, size = 4 }: { mode: 'session' | 'transaction'; size?: number },
): Promise<string> {
  const servers = await Promise.all(Array.from({ length: size }, () => openServer(databaseUrl)))
  const waiting: ((server: Server) => void)[] = []
  const free = [...servers]
  const take = async (): Promise<Server> =>
    free.shift() ?? new Promise<Server>(resolve => waiting.push(resolve))
  const giveBack = (server: Server): void => {
    server.user = null
    const next = waiting.shift()
    if (next) next(server)
    else free.push(server)
  }
  const sockets = new Set<Socket>()
  const listener = createServer(socket => {
    sockets.add(socket.on('error', () => socket.destroy()))
    serve(socket, { mode, take, giveBack })
  })
  await new Promise<void>(resolve => listener.listen(0, '127.0.0.1', resolve))
  t.teardown(async () => {
    sockets.forEach(socket => socket.destroy())
    listener.close()
    servers.forEach(({ stream }) => stream.destroy())
  })
  return atPort(databaseUrl, (listener.address() as AddressInfo).port)
}

/** A connection that the driver has opened, from then on as bytes. */
async function openServer(connectionString: string): Promise<Server> {
  const client = new pg.Client({ connectionString })
  client.on('error', () => {})
  await client.connect()
  const { stream } = (client as pg.Client & { connection: { stream: Socket } }).connection
  stream.removeAllListeners('data')
  const server: Server = { client, stream, user: null }
  stream.on('data', (bytes: Buffer) => server.user?.(bytes))
  return server
}

type Serving = {
  mode: 'session' | 'transaction'
  take: () => Promise<Server>
  giveBack: (server: Server) => void
}

function serve(socket: Socket, { mode, take, giveBack }: Serving): void {
  let server: Server | null = null
  let unanswered = 0
  let isIdle = true
  const fromServer = splitMessages(0, message => {
    if (message[0] === readyForQuery) {
      unanswered--
      isIdle = message[5] === idle
    }
    socket.write(message)
    if (mode === 'session' || !server || unanswered > 0 || !isIdle) return
    giveBack(server)
    server = null
  })
  let begun = false
  let work = Promise.resolve()
  const fromClient = async (message: Buffer): Promise<void> => {
    if (message[0] === terminate) return void socket.end()
    if (!server) {
      server = await take()
      server.user = fromServer
    }
    if (message[0] === query || message[0] === sync) unanswered++
    server.stream.write(message)
  }
  const later = splitMessages(0, message => void (work = work.then(() => fromClient(message))))
  const first = splitMessages(-1, () => {
    begun = true
    socket.write(greeting())
  })
  socket.on('data', (bytes: Buffer) => (begun ? later(bytes) : first(bytes)))
  socket.on('close', () => {
    if (server && mode === 'transaction' && unanswered === 0 && isIdle) giveBack(server)
    else server?.stream.destroy()
  })
}

/** Calls back for each whole message; at -1 it begins with its length, as the first one does, otherwise with a letter. */
function splitMessages(letterAt: 0 | -1, onMessage: (message: Buffer) => void) {
  let rest: Buffer = Buffer.alloc(0)
  return (bytes: Buffer): void => {
    rest = Buffer.concat([rest, bytes])
    const lengthAt = letterAt + 1
    while (rest.length >= lengthAt + 4) {
      const end = lengthAt + rest.readUInt32BE(lengthAt)
      if (rest.length < end) return
      const message = rest.subarray(0, end)
      rest = rest.subarray(end)
      onMessage(message)
    }
  }
}

/** Authentication is done; a number of a process that no server has; ready. */
const greeting = (): Buffer =>
  Buffer.concat([
    Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0]),
    Buffer.from([0x4b, 0, 0, 0, 12, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1]),
    Buffer.from([readyForQuery, 0, 0, 0, 5, idle]),
  ])
