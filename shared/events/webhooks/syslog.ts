import { connect, isIP, type LookupFunction } from 'node:net'
import { hostname } from 'node:os'
import { addAbortSignal, finished } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import type { WebhookEvent } from '#shared/events/webhooks/webhooks.postgres.ts'

/** Facility 13, log audit; severity 6. */
const priority = 13 * 8 + 6

/** RFC 5424, after its length in bytes as RFC 6587 and RFC 5425 demand. */
function toFrame({ type, timestamp, data }: WebhookEvent): string {
  const head = `<${priority}>1 ${timestamp} ${hostname()} memory-vault`
  const line = `${head} - ${type} - ${JSON.stringify(data)}`
  return `${Buffer.byteLength(line)} ${line}`
}

/** Time in which a receiver that reads nothing closes, beyond two round trips. */
const refusalMs = 100

/**
 * Sends events over a connection of their own. Syslog answers nothing, so they count as taken once the receiver has
 * read the end of the connection, and closed its own side after that: one that goes away before resets it.
 *
 * @throws Error when the connection has failed, or was closed early.
 */
export async function sendSyslog(
  url: URL,
  events: readonly WebhookEvent[],
  { lookup, signal }: { lookup?: LookupFunction; signal: AbortSignal },
): Promise<void> {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const address = { host, port: Number(url.port), ...(lookup && { lookup }) }
  const isTls = url.protocol === 'syslog+tls:'
  const startedAt = performance.now()
  const socket = isTls
    ? connectTls({ ...address, ...(isIP(host) === 0 && { servername: host }) })
    : connect(address)
  addAbortSignal(signal, socket)
  let isClosed = false
  const closed = new Promise<void>((done, fail) => {
    socket.once('end', () => (isClosed = true))
    finished(socket, error => (error ? fail(error) : done()))
  })
  closed.catch(() => undefined)
  await Promise.race([
    closed,
    new Promise(done => socket.once(isTls ? 'secureConnect' : 'connect', done)),
  ])
  const roundTripMs = performance.now() - startedAt
  socket.resume().write(events.map(toFrame).join(''))
  await Promise.race([closed, delay(refusalMs + 2 * roundTripMs)])
  if (isClosed) throw Object.assign(new Error('closed early'), { code: 'ECLOSED' })
  socket.end()
  await closed
}
