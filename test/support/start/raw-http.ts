import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

type RawAnswer = { status: number; headers: Record<string, string>; body: string }

export type RawResult = {
  /** All answers in order, interim ones (1xx) included. */
  answers: RawAnswer[]
  /** Whether the server closed the connection; otherwise the client did. */
  closedByServer: boolean
  ms: number
}

export type RawOptions = {
  /** Pause between two pieces. */
  pauseMs?: number
  /** Ends the sending side after the last piece and continues to read. */
  halfClose?: boolean
  /** Time after which the client closes the connection. */
  timeoutMs?: number
  /** Closes the connection after this many answers. */
  answersMax?: number
}

/**
 * Writes pieces of bytes to a port and reads the answers until the server closes the connection.
 */
export async function sendRaw(
  port: number,
  pieces: readonly (string | Uint8Array)[],
  { pauseMs = 5, halfClose = false, timeoutMs = 120_000, answersMax = Infinity }: RawOptions = {},
): Promise<RawResult> {
  const startedAt = performance.now()
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const chunks: Buffer[] = []
  const { promise: ended, resolve: end } = Promise.withResolvers<boolean>()
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    if (answersIn(Buffer.concat(chunks)).length >= answersMax) end(false)
  })
  // A server that refuses during the upload may reset the connection; answers until then are valid.
  socket.on('error', () => end(true))
  socket.on('end', () => end(true))
  socket.on('close', () => end(true))
  const timer = setTimeout(() => end(false), timeoutMs)

  await write(socket, pieces, pauseMs)
  if (halfClose) socket.end()
  const closed = await ended
  clearTimeout(timer)
  socket.destroy()
  const ms = performance.now() - startedAt
  return { answers: answersIn(Buffer.concat(chunks)), closedByServer: closed, ms }
}

async function write(
  socket: Socket,
  pieces: readonly (string | Uint8Array)[],
  pauseMs: number,
): Promise<void> {
  for (const [index, piece] of pieces.entries()) {
    if (index > 0) await delay(pauseMs)
    if (!socket.writable) return
    socket.write(typeof piece === 'string' ? Buffer.from(piece, 'latin1') : piece)
  }
}

/** Parses the complete answers of a stream of bytes. */
function answersIn(bytes: Buffer): RawAnswer[] {
  const answers: RawAnswer[] = []
  for (let rest = bytes; rest.length > 0;) {
    const headEnd = rest.indexOf('\r\n\r\n')
    if (headEnd < 0) break
    const [statusLine = '', ...lines] = rest.subarray(0, headEnd).toString('latin1').split('\r\n')
    const headers = Object.fromEntries(
      lines.map(line => {
        const colon = line.indexOf(':')
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
      }),
    )
    const start = headEnd + 4
    const length = Number(headers['content-length'] ?? 0)
    if (rest.length < start + length) break
    const body = rest.subarray(start, start + length).toString('utf8')
    answers.push({ status: Number(statusLine.split(' ')[1]), headers, body })
    rest = rest.subarray(start + length)
  }
  return answers
}
