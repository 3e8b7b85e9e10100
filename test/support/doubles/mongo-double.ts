import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { BSON, type Document } from 'mongodb'
import type { Test } from 'tap'
import { socketAddress } from '#test/support/doubles/fault-proxy.ts'

/**
 * What happens to a command: a document is its answer; `cut` closes the connection before it is executed,
 * `lose-reply` after; undefined lets the engine, or the usual answer of an empty server, reply.
 */
export type CommandOutcome = Document | 'cut' | 'lose-reply' | undefined
export type CommandRule = (
  name: string,
  command: Document,
) => CommandOutcome | Promise<CommandOutcome>

export type MongoDouble = {
  /** Connection string of the double, with the database of `engine` or `vault`. */
  url: string
  port: number
  /** Every command that arrived, but those of the handshake, in order. */
  commands: Document[]
  /** Decides about every command but those of the handshake. */
  rule: CommandRule
  /** Fields of the answer to `hello`: what kind of server it is. */
  hello: Document
}

type Settings = { engine?: string; hello?: Document; rule?: CommandRule; options?: string }

/** An error as a server sends it; label `RetryableWriteError` as a primary that steps down does. */
export const serverError = (code: number, codeName: string, errorLabels?: string[]): Document => ({
  ok: 0,
  code,
  codeName,
  errmsg: codeName,
  ...(errorLabels && { errorLabels }),
})

/** Errors of a primary that steps down, shuts down or recovers. */
export const electionErrors = [
  serverError(10107, 'NotWritablePrimary', ['RetryableWriteError']),
  serverError(11600, 'InterruptedAtShutdown', ['RetryableWriteError']),
  serverError(11602, 'InterruptedDueToReplStateChange', ['RetryableWriteError']),
  serverError(91, 'ShutdownInProgress', ['RetryableWriteError']),
  serverError(189, 'PrimarySteppedDown', ['RetryableWriteError']),
  serverError(13435, 'NotPrimaryNoSecondaryOk', ['RetryableWriteError']),
]

export const standalone = {}
export const mongos = { msg: 'isdbgrid' }

/** A server of MongoDB's wire protocol; with `engine` in front of a real one. A replica set by default. */
export async function startMongoDouble(t: Test, settings: Settings = {}): Promise<MongoDouble> {
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket.on('error', () => socket.destroy()))
    socket.on('close', () => sockets.delete(socket))
    serve(socket, double, settings.engine)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    sockets.forEach(socket => socket.destroy())
    return new Promise(resolve => server.close(resolve))
  })
  const { port } = server.address() as AddressInfo
  const host = `127.0.0.1:${port}`
  const database = settings.engine?.match(/\/([\w-]+)(?:\?|$)/)?.[1] ?? 'vault'
  const hello = settings.hello ?? { setName: 'rs', hosts: [host], me: host, primary: host }
  const double: MongoDouble = {
    url: `mongodb://${host}/${database}${settings.options ?? ''}`,
    port,
    commands: [],
    rule: settings.rule ?? (() => undefined),
    hello,
  }
  return double
}

const handshake = new Set(['hello', 'ismaster', 'isMaster'])

function serve(client: Socket, double: MongoDouble, engineUrl: string | undefined): void {
  const engine = engineUrl === undefined ? undefined : openEngine(client, engineUrl)
  let queue = Promise.resolve()
  readMessages(client, message => {
    queue = queue
      .then(() => reply(client, message, double, engine))
      .catch(() => void client.destroy())
  })
}

async function reply(
  client: Socket,
  message: Buffer,
  double: MongoDouble,
  engine: Engine | undefined,
): Promise<void> {
  const command = parseCommand(message)
  const name = Object.keys(command)[0]!
  if (handshake.has(name)) return void client.write(encode(message, helloAnswer(double)))
  double.commands.push(command)
  const outcome = await double.rule(name, command)
  if (outcome === 'cut') return void client.destroy()
  if (typeof outcome === 'object') return void client.write(encode(message, outcome))
  const answer = engine ? await engine.ask(message, command) : usualAnswer(name, command)
  if (outcome === 'lose-reply') return void client.destroy()
  client.write(Buffer.isBuffer(answer) ? answer : encode(message, answer))
}

const helloAnswer = ({ hello }: MongoDouble): Document => ({
  helloOk: true,
  isWritablePrimary: true,
  ismaster: true,
  maxBsonObjectSize: 16_777_216,
  maxMessageSizeBytes: 48_000_000,
  maxWriteBatchSize: 100_000,
  logicalSessionTimeoutMinutes: 30,
  minWireVersion: 0,
  maxWireVersion: 21,
  readOnly: false,
  ok: 1,
  ...hello,
})

/** The answer of a server without data that accepts everything. */
function usualAnswer(name: string, command: Document): Document {
  const ns = `${command['$db']}.${command[name]}`
  if (name === 'find' || name === 'aggregate')
    return { cursor: { id: BSON.Long.ZERO, ns, firstBatch: [] }, ok: 1 }
  const items = (command['documents'] ??
    command['updates'] ??
    command['deletes'] ??
    []) as unknown[]
  return { ok: 1, n: items.length, nModified: items.length }
}

type Engine = { ask(message: Buffer, command: Document): Promise<Buffer | Document> }

/** Answers of retryable writes by session and number: a repeated write is not executed again. */
const writeAnswers = new Map<string, Document>()

/** The real server knows no sessions: they are taken off, and retryable writes kept here as a set keeps them. */
function openEngine(client: Socket, url: string): Engine {
  const socket = connect(socketAddress(url))
  const waiting: ((answer: Buffer) => void)[] = []
  readMessages(socket, answer => waiting.shift()?.(answer))
  socket.on('error', () => client.destroy())
  socket.on('close', () => client.destroy())
  client.on('close', () => socket.destroy())
  const send = (message: Buffer): Promise<Buffer> =>
    new Promise(resolve => {
      waiting.push(resolve)
      socket.write(message)
    })
  return {
    async ask(message, command) {
      const { lsid, txnNumber } = command
      if (lsid === undefined) return send(message)
      const key = `${lsid.id.toString('hex')} ${txnNumber}`
      const known = txnNumber === undefined ? undefined : writeAnswers.get(key)
      if (known) return known
      const { txnNumber: _, lsid: __, ...exact } = parseCommand(message, false)
      const answer = parseCommand(await send(encode(message, exact, message.readInt32LE(4))), false)
      if (txnNumber !== undefined && Number(answer['ok']) === 1) writeAnswers.set(key, answer)
      return answer
    },
  }
}

const opMsg = 2013
const opQuery = 2004

/** Calls back with every whole message of a connection. */
function readMessages(socket: Socket, onMessage: (message: Buffer) => void): void {
  let chunks: Buffer[] = []
  let size = 0
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    size += chunk.length
    while (size >= 4) {
      if (chunks[0]!.length < 4) chunks = [Buffer.concat(chunks)]
      const wanted = chunks[0]!.readInt32LE(0)
      if (size < wanted) return
      const all = Buffer.concat(chunks)
      onMessage(all.subarray(0, wanted))
      chunks = all.length > wanted ? [all.subarray(wanted)] : []
      size -= wanted
    }
  })
}

/** The command of a message, with the documents of its sequences. `promote`: BSON numbers as numbers. */
function parseCommand(message: Buffer, promote = true): Document {
  const options = { promoteValues: promote, promoteLongs: promote, promoteBuffers: false }
  const read = (at: number): Document =>
    BSON.deserialize(message.subarray(at, at + message.readInt32LE(at)), options)
  if (message.readInt32LE(12) === opQuery) return read(message.indexOf(0, 20) + 9)
  const sequences: Document = {}
  let command: Document = {}
  for (let at = 20; at < message.length;) {
    const size = message.readInt32LE(at + 1)
    if (message[at] === 0) command = read(at + 1)
    else {
      const nameEnd = message.indexOf(0, at + 5)
      const rows: Document[] = []
      for (let row = nameEnd + 1; row < at + 1 + size; row += message.readInt32LE(row))
        rows.push(read(row))
      sequences[message.toString('utf8', at + 5, nameEnd)] = rows
    }
    at += 1 + size
  }
  return { ...command, ...sequences }
}

/** A document as the answer to a message; with `requestId` as a request. */
function encode(request: Buffer, document: Document, requestId?: number): Buffer {
  const body = BSON.serialize(document)
  const isLegacy = request.readInt32LE(12) === opQuery
  const head = Buffer.alloc(isLegacy ? 36 : 21)
  head.writeInt32LE(head.length + body.length, 0)
  head.writeInt32LE(requestId ?? 0, 4)
  head.writeInt32LE(requestId === undefined ? request.readInt32LE(4) : 0, 8)
  head.writeInt32LE(isLegacy ? 1 : opMsg, 12)
  if (isLegacy) head.writeInt32LE(1, 32)
  return Buffer.concat([head, body])
}
