import { subscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'

/**
 * Ends a wait of the driver that has no end. Driver 7.8 (`Connection.writeCommand`) waits for 'drain' alone when a
 * socket takes no more; a socket whose server has just closed it takes nothing and never drains. When this happens
 * to a monitor its server counts as unknown until the process ends: seen once in some 60 kills of a server under
 * load. After 'drain' the driver finds the error of the closed connection and goes on.
 *
 * For the sockets of all clients of this process, since the driver does not give its own: others have removed their
 * listeners by then.
 */
export function drainClosedSockets(): void {
  if (isSubscribed) return
  isSubscribed = true
  // https://nodejs.org/api/diagnostics_channel.html: TCP, pipes and TLS
  subscribe('net.client.socket', message => {
    const { socket } = message as { socket: Socket }
    socket.once('close', () => process.nextTick(() => socket.emit('drain')))
  })
}

let isSubscribed = false
