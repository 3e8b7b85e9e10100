import { lookup } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { Refusal } from '#shared/core/errors.ts'
import privateAddresses from '#shared/events/webhooks/private-addresses.json' with { type: 'json' }

const privateRanges = new BlockList()
for (const family of ['ipv4', 'ipv6'] as const)
  for (const range of privateAddresses[family]) {
    const [address = '', bits] = range.split('/')
    privateRanges.addSubnet(address, Number(bits), family)
  }
const globalRange = new BlockList()
globalRange.addSubnet('2000::', 3, 'ipv6')
const loopbackRanges = new BlockList()
loopbackRanges.addSubnet('127.0.0.0', 8, 'ipv4')
loopbackRanges.addAddress('::1', 'ipv6')

export type AddressPolicy = {
  /** For tests: loopback addresses are allowed too. */
  allowLoopback: boolean
}

/** Whether a numeric address is public. */
export function isAllowedAddress(address: string, policy: AddressPolicy): boolean {
  const family = isIP(address)
  if (family === 0) return false
  const type = family === 4 ? 'ipv4' : 'ipv6'
  if (policy.allowLoopback && loopbackRanges.check(address, type)) return true
  return !privateRanges.check(address, type) && (family === 4 || globalRange.check(address, type))
}

const urlMax = 2_048

/**
 * Requires an address with https, without credentials, not private. The addresses of a name are checked when
 * something is sent.
 *
 * @throws Refusal `invalid`.
 */
export function requirePublicUrl(text: string, policy: AddressPolicy): URL {
  const url = URL.canParse(text) ? new URL(text) : null
  const host = url && unbracketedHost(url)
  const isLocal = policy.allowLoopback && host !== null && isLoopbackHost(host)
  const fault = !url
    ? 'is no URL'
    : url.href.length > urlMax
      ? `has more than ${urlMax} characters`
      : url.protocol !== 'https:' && !(isLocal && url.protocol === 'http:')
        ? 'must begin with https://'
        : url.username || url.password
          ? 'must not hold credentials'
          : isIP(host!) !== 0 && !isAllowedAddress(host!, policy)
            ? 'is a private address'
            : null
  if (fault !== null) throw new Refusal('invalid', `url ${fault}`, 'Give a public https:// address')
  url!.hash = ''
  return url!
}

/** `URL` has brought numeric addresses of any notation into the usual one. */
const unbracketedHost = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, '$1')

const isLoopbackHost = (host: string): boolean =>
  host === 'localhost' ||
  (isIP(host) !== 0 && loopbackRanges.check(host, isIP(host) === 4 ? 'ipv4' : 'ipv6'))

/**
 * Resolves a name for a connection, which then goes to the address that was checked. A name with any private address
 * is refused.
 */
export const publicLookup =
  (policy: AddressPolicy): LookupFunction =>
  (hostname, options, done) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      const [first] = addresses ?? []
      if (error || !first) return done(error ?? notPublicError(), '')
      if (!addresses.every(({ address }) => isAllowedAddress(address, policy))) {
        return done(notPublicError(), '')
      }
      if (options.all) done(null, addresses)
      else done(null, first.address, first.family)
    })
  }

const notPublicError = (): NodeJS.ErrnoException =>
  Object.assign(new Error('not a public address'), { code: 'EPRIVATE' })
