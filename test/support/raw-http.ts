import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

type RawAnswer = { status: number; headers: Record<string, string>; body: string }

export type RawResult = {
  /** Everything that came back, in order; interim answers (1xx) too. */
  answers: RawAnswer[]
  /** Who ended it: the server by closing, or we because it kept the connection open. */
  closedByServer: boolean
  ms: number
}

export type RawOptions = {
  /** Between two of the pieces. */
  pauseMs?: number
  /** Say goodbye after the last piece, and go on listening. */
  halfClose?: boolean
  /** A connection that is still open then is left by us. */
  timeoutMs?: number
  /** Leave as soon as this many answers are there. */
  answersMax?: number
}

/**
 * Writes pieces to a port as they are, byte for byte, and hears what comes back until the server closes
 * the connection.
 */
export async function sendRaw(
  port: number,
  pieces: readonly (string | Uint8Array)[],
  { pauseMs = 5, halfClose = false, timeoutMs = 2_000, answersMax = Infinity }: RawOptions = {},
): Promise<RawResult> {
  const begun = performance.now()
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  const chunks: Buffer[] = []
  const { promise: over, resolve: end } = Promise.withResolvers<boolean>()
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    if (answersIn(Buffer.concat(chunks)).length >= answersMax) end(false)
  })
  // A server that refuses while we still write may cut the line: what came before is what counts.
  socket.on('error', () => end(true))
  socket.on('end', () => end(true))
  socket.on('close', () => end(true))
  const late = setTimeout(() => end(false), timeoutMs)

  await write(socket, pieces, pauseMs)
  if (halfClose) socket.end()
  const closed = await over
  clearTimeout(late)
  socket.destroy()
  const ms = performance.now() - begun
  return { answers: answersIn(Buffer.concat(chunks)), closedByServer: closed, ms }
}

async function write(
  socket: Socket,
  pieces: readonly (string | Uint8Array)[],
  pauseMs: number,
): Promise<void> {
  for (const [index, piece] of pieces.entries()) {
    if (index > 0) await delay(pauseMs)
    if (socket.writable)
      socket.write(typeof piece === 'string' ? Buffer.from(piece, 'latin1') : piece)
  }
}

/** Reads answers off a stream of bytes; one that is not whole yet is left out. */
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
