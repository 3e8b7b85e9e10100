import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'

/**
 * The address of a client: of its connection, or behind proxies what the outermost of those that are trusted has
 * written into `X-Forwarded-For`.
 *
 * @param trustedProxies how many proxies in front of the service add to that header
 */
export function clientAddress(
  { socket, headers }: Pick<IncomingMessage, 'socket' | 'headers'>,
  trustedProxies: number,
): string {
  const connected = socket.remoteAddress ?? ''
  if (trustedProxies === 0) return connected
  const forwarded = String(headers['x-forwarded-for'] ?? '').split(',')
  const address = withoutPort((forwarded.at(-trustedProxies) ?? forwarded[0]!).trim())
  return isIP(address) === 0 ? connected : address
}

/** Some proxies write `203.0.113.7:4711` and `[2001:db8::1]:4711`. */
const withoutPort = (address: string): string =>
  /^\[(.+)\](?::\d+)?$/.exec(address)?.[1] ?? address.replace(/^([\d.]+):\d+$/, '$1')
