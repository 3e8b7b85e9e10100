import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { rateLimitSubnet } from '#shared/access/rate-limit/subnet.ts'

/** A connection, and how many bytes it had received when its last response had been sent. */
type ConnectionReads = Map<Socket, number>

/**
 * Bounds the connections of one address (of one /64 network of IPv6) on which a whole request head has not
 * arrived: for a further one the oldest is closed. Requests under way and idle connections that are
 * kept alive do not count, so a proxy in front, whose heads arrive whole, is not bound by this.
 *
 * @param perAddress null: unbounded.
 */
export function limitPendingConnections(server: Server, perAddress: number | null): void {
  if (perAddress === null) return
  const byAddress = new Map<string, ConnectionReads>()
  // Worked out once for each connection: a closed socket has no address any more.
  const addresses = new WeakMap<Socket, string>()

  const wait = (socket: Socket): void => {
    if (socket.destroyed) return
    const address = addresses.get(socket)!
    const reads = byAddress.get(address) ?? new Map<Socket, number>()
    byAddress.set(address, reads)
    reads.set(socket, socket.bytesRead)
    if (reads.size > perAddress) findOldestPending(reads, perAddress)?.destroy()
  }
  const stopWaiting = (socket: Socket): void => {
    const address = addresses.get(socket)!
    const reads = byAddress.get(address)
    reads?.delete(socket)
    if (reads?.size === 0) byAddress.delete(address)
  }

  server.on('connection', socket => {
    addresses.set(socket, rateLimitSubnet(socket.remoteAddress ?? ''))
    wait(socket)
    socket.once('close', () => stopWaiting(socket))
  })
  server.on('request', ({ socket }, response) => {
    stopWaiting(socket)
    response.once('close', () => wait(socket))
  })
}

/** The first connection that is pending, if more than `max` are. */
function findOldestPending(reads: ConnectionReads, max: number): Socket | undefined {
  let oldest: Socket | undefined
  let count = 0
  for (const [socket, readBefore] of reads) {
    const isIdle = readBefore > 0 && socket.bytesRead === readBefore
    if (isIdle) continue
    oldest ??= socket
    if (++count > max) return oldest
  }
  return undefined
}
