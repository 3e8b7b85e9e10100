import { createServer, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { Test } from 'tap'
import { trustLocalhost } from '#test/support/doubles/https-server.ts'
import { listen } from '#test/support/start/listen.ts'

type ReceivedLine = {
  priority: number
  timestamp: string
  app: string
  id: string
  // oxlint-disable-next-line typescript/no-explicit-any -- what a test reads is what it asserts
  body: any
}

/** `refuse` closes without reading, `reset` breaks the connection at the first bytes. */
type Conduct = 'take' | 'refuse' | 'reset'

export type SyslogReceiver = { url: string; received: ReceivedLine[]; conduct: Conduct }

/** A receiver of RFC 5424 over TCP or TLS, in frames with their length. */
export async function startSyslogReceiver(
  t: Test,
  { tls }: { tls: boolean },
): Promise<SyslogReceiver> {
  const receiver: SyslogReceiver = { url: '', received: [], conduct: 'take' }
  const onSocket = (socket: Socket): void => {
    socket.on('error', () => undefined)
    if (receiver.conduct === 'refuse') return void socket.destroy()
    let bytes = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      if (receiver.conduct === 'reset') return tls ? socket.destroy() : socket.resetAndDestroy()
      bytes = Buffer.concat([bytes, chunk])
    })
    socket.on('end', () => receiver.received.push(...readFrames(bytes)))
  }
  const server = tls ? createTlsServer(trustLocalhost(t), onSocket) : createServer(onSocket)
  const { port } = new URL(await listen(t, server))
  receiver.url = `syslog+${tls ? 'tls' : 'tcp'}://localhost:${port}`
  return receiver
}

function readFrames(bytes: Buffer): ReceivedLine[] {
  const lines: ReceivedLine[] = []
  for (let at = 0; at < bytes.length;) {
    const space = bytes.indexOf(' ', at)
    const length = Number(bytes.subarray(at, space))
    const line = bytes.subarray(space + 1, space + 1 + length).toString()
    at = space + 1 + length
    const [, priority, timestamp, app, id, body] = /^<(\d+)>1 (\S+) \S+ (\S+) - (\S+) - (.*)$/.exec(
      line,
    )!
    lines.push({
      priority: Number(priority),
      timestamp: timestamp!,
      app: app!,
      id: id!,
      body: JSON.parse(body!) as unknown,
    })
  }
  return lines
}
