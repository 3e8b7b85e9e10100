import { once } from 'node:events'
import { connect } from 'node:net'
import { pickOne } from '#scripts/lab/prove/section.ts'

/** No request, or half of one. */
const pieces: readonly string[] = [
  'GET / HTTP/1.1\r\n\r\n',
  'POST /v1/memory/ingest HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n',
  'POST /v1/memory/ingest HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n',
  '\u0016\u0003\u0001\u0002\u0000',
  'GET /\u0000 HTTP/1.1\r\nhost: a\r\n\r\n',
  `GET /${'a'.repeat(70_000)} HTTP/1.1\r\nhost: a\r\n\r\n`,
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'GET /health HTTP/1.1\r\nhost: a\r\nhost: b\r\nconnection: close\r\n\r\n',
  '\r\n\r\n\r\n',
]

/** Writes bytes that are no or half a request. @returns whether the server closed the connection within `hangMs` */
export async function sendRawBytes(
  port: number,
  hangMs: number,
  random: () => number,
): Promise<boolean> {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.on('error', () => {})
  socket.resume()
  socket.end(Buffer.from(pickOne(pieces, random), 'latin1'))
  const timer = setTimeout(() => socket.destroy(new Error('hang')), hangMs)
  const [hadError] = (await once(socket, 'close')) as [boolean]
  clearTimeout(timer)
  return !(hadError && socket.errored?.message === 'hang')
}
