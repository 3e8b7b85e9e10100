import { lookup } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import type { Config } from '#shared/core/config.ts'
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
  /** What the operator allows webhooks to name, private or not encrypted. */
  listed?: ReadonlySet<string>
}

export const webhookPolicy = (
  config: Pick<Config, 'allowLoopbackWebhooks' | 'listedWebhooks'>,
): AddressPolicy => ({
  allowLoopback: config.allowLoopbackWebhooks,
  listed: new Set(config.listedWebhooks.map(text => parseReceiverUrl(text)?.href ?? '')),
})

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

/** How a scheme of a receiver is checked: as an address of the web. */
const webSchemes: Record<string, string> = {
  'syslog+tls:': 'https:',
  'syslog+tcp:': 'http:',
  'otlp+https:': 'https:',
  'otlp+http:': 'http:',
}

/** Where a receiver over HTTP is. */
export const toWebUrl = ({ href, protocol }: URL): string =>
  (webSchemes[protocol] ?? protocol) + href.slice(protocol.length)

/** Null for what is none. Host and port are as `URL` writes those of the web. */
function parseReceiverUrl(text: string): URL | null {
  const scheme = /^[\w+]+:/.exec(text)?.[0].toLowerCase() ?? ''
  const web = URL.parse((webSchemes[scheme] ?? scheme) + text.slice(scheme.length))
  if (!web || !webSchemes[scheme]) return web
  const url = new URL(scheme + web.href.slice(web.protocol.length))
  if (scheme.startsWith('otlp')) {
    if (web.pathname === '/') url.pathname = '/v1/logs'
    return url
  }
  // Syslog has no usual port, and that of the web is not written.
  url.port = /:(\d+)\/?$/.exec(text)?.[1] ?? ''
  url.pathname = ''
  return url.port === '' ? null : url
}

/**
 * Requires an address of a webhook: one of the web, `otlp+https://`, `syslog+tls://` with a port, or one that the
 * operator has listed. A listed one is sent to wherever its name leads.
 *
 * @throws Refusal `invalid`.
 */
export function requireReceiverUrl(
  text: string,
  policy: AddressPolicy,
): { url: URL; isListed: boolean } {
  const url = parseReceiverUrl(text)
  const isListed = url !== null && policy.listed?.has(url.href) === true
  if (url && webSchemes[url.protocol]) {
    if (!isListed) requirePublicUrl(toWebUrl(url), policy)
    return { url, isListed }
  }
  return { url: isListed ? url : requirePublicUrl(text, policy), isListed }
}

/** Whether an address takes nothing but the audit. */
export const isAuditOnly = (url: string): boolean => /^(?:syslog|otlp)\+/.test(url)

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
