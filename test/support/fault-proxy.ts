import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { Test } from 'tap'

/** Stands between a service and its database, and can be closed. */
export type FaultProxy = {
  /** The database's address, as it is behind the gate. */
  url: string
  /** Cuts every connection, and refuses new ones. */
  shut(): void
  /** Passes on nothing any more, and lets everybody wait. */
  freeze(): void
  /** Lets everybody through again: to the same server, or to where it is now. */
  open(url?: string): void
}

/** A gate on a loopback port of its own before the server that a connection string names. */
export async function startFaultProxy(t: Test, url: string): Promise<FaultProxy> {
  let target = addressIn(url)
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
    url: atPort(url, (server.address() as AddressInfo).port),
    shut() {
      state = 'shut'
      cut()
    },
    freeze() {
      state = 'frozen'
      passing.forEach(socket => socket.pause())
    },
    open(elsewhere) {
      if (elsewhere) target = addressIn(elsewhere)
      // Who was kept waiting has given up by now, as with a server that was restarted.
      if (state === 'frozen') cut()
      state = 'open'
    },
  }
}

/** A host and port, or the path of a Unix socket, which stands encoded where the host does. */
function addressIn(url: string): { host: string; port: number } | { path: string } {
  const { hostname, port, protocol } = new URL(url)
  const host = decodeURIComponent(hostname)
  if (host.startsWith('/')) return { path: host }
  return { host, port: Number(port || (protocol === 'mongodb:' ? 27_017 : 5_432)) }
}

/** By hand: where a host is an encoded path, URL refuses to change it. */
const atPort = (url: string, port: number): string =>
  url.replace(
    /^([a-z+]+:\/\/(?:[^/@]*@)?)[^/?]*/,
    (_, before: string) => `${before}127.0.0.1:${port}`,
  )
