import { isIPv6 } from 'node:net'

/**
 * Whom an address is counted as: itself, or with IPv6 its first 64 bits, which are one household's or
 * one machine's. An IPv4 address in IPv6 clothes is the IPv4 address.
 */
export function rateLimitSubnet(address: string): string {
  const bareAddress = address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '')
  if (!isIPv6(bareAddress)) return bareAddress
  const [head = '', tail] = bareAddress.toLowerCase().split('::')
  const groups = head === '' ? [] : head.split(':')
  const after = tail ? tail.split(':') : []
  const zeros = tail === undefined ? 0 : 8 - groups.length - after.length
  const all = [...groups, ...Array<string>(Math.max(0, zeros)).fill('0'), ...after]
  const network = all.slice(0, 4).map(group => Number.parseInt(group, 16).toString(16))
  return `${network.join(':')}::/64`
}
