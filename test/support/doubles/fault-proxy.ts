import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { Test } from 'tap'
import { withoutConnectDeadlines } from '#test/setup/connect-deadlines.ts'

/** A TCP proxy between a service and its database that can be interrupted. */
export type FaultProxy = {
  /** The URL of the database through the proxy. */
  url: string
  /** Cuts every connection, and refuses new ones. */
  shut(): void
  /** Forwards no more bytes and keeps the connections open. */
  freeze(): void
  /** Forwards again, to the same server or to another URL. */
  open(url?: string): void
}

/** Starts a proxy on a free loopback port in front of the server of a connection string. */
export async function startFaultProxy(t: Test, url: string): Promise<FaultProxy> {
  let target = socketAddress(url)
  let state: 'open' | 'shut' | 'frozen' = 'open'
  const passing = new Set<Socket>()

  const server = createServer({ allowHalfOpen: false }, client => {
    if (state === 'shut') return void client.resetAndDestroy()
    const upstream = connect(target)
    const both = [client, upstream]
    for (const [from, to] of [both, both.toReversed()] as [Socket, Socket][]) {
      passing.add(from)
      from.on('error', () => to.destroy())
      from.on('close', () => {
        passing.delete(from)
        to.destroy()
      })
      from.pipe(to)
      if (state === 'frozen') from.pause()
    }
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const cut = (): void => passing.forEach(socket => socket.destroy())
  t.teardown(() => {
    cut()
    return new Promise(resolve => server.close(resolve))
  })
  return {
    // An outage is noticed within the service's own deadlines.
    url: atPort(withoutConnectDeadlines(url), (server.address() as AddressInfo).port),
    shut() {
      state = 'shut'
      cut()
    },
    freeze() {
      state = 'frozen'
      passing.forEach(socket => socket.pause())
    },
    open(elsewhere) {
      if (elsewhere) target = socketAddress(elsewhere)
      // Frozen connections are cut, as by a restart of the server.
      if (state === 'frozen') cut()
      state = 'open'
    },
  }
}

/** A host and port, or the path of a Unix socket, which is encoded in place of the host. */
export function socketAddress(url: string): { host: string; port: number } | { path: string } {
  const { hostname, port, protocol } = new URL(url)
  const host = decodeURIComponent(hostname)
  if (host.startsWith('/')) return { path: host }
  return { host, port: Number(port || (protocol === 'mongodb:' ? 27_017 : 5_432)) }
}

/** The same database at a loopback port. Replaces the host by text, because URL cannot change a host that is an encoded path. */
export const atPort = (url: string, port: number): string =>
  url.replace(
    /^([a-z+]+:\/\/(?:[^/@]*@)?)[^/?]*/,
    (_, before: string) => `${before}127.0.0.1:${port}`,
  )
