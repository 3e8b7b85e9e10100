import { accessSync, constants } from 'node:fs'

/**
 * Checks a connection string of PostgreSQL for what the driver would refuse or read as something else.
 *
 * @throws Error whose message follows the name of the variable.
 */
export function parsePostgresUrl(text: string): string {
  const { authority, rest } = splitUrl(text, ['postgres:', 'postgresql:'])
  const hosts = authority.slice(authority.lastIndexOf('@') + 1)
  if (hosts.includes(',')) throw new Error('must name one host: the driver knows no list of hosts')
  requirePorts([hosts])
  // The driver also takes a user without a host, for a socket.
  const url = [text, text.replace('@/', '@socket/')].find(candidate => URL.canParse(candidate))
  if (!url || isUnescaped(authority, rest)) throw new Error(`must be one URL: ${escapes}`)
  requireFiles(new URL(url).searchParams, ['sslrootcert', 'sslcert', 'sslkey'])
  return text
}

/** As `parsePostgresUrl`, for MongoDB: several hosts are allowed. */
export function parseMongoUri(text: string): string {
  const { authority, rest } = splitUrl(text, ['mongodb:', 'mongodb+srv:'])
  const credentials = authority.slice(0, Math.max(0, authority.lastIndexOf('@')))
  if (isUnescaped(authority, rest) || /@|:[^:]*:|%(?![0-9a-f]{2})/i.test(credentials))
    throw new Error(`must be one connection string: ${escapes}`)
  requirePorts(authority.slice(authority.lastIndexOf('@') + 1).split(','))
  const [path = '', query = ''] = rest.split('?', 2)
  if (/[/\\. "$*<>:|]/.test(path.slice(1)))
    throw new Error(
      'names a database that MongoDB does not take: a name has no / \\ . " $ * < > : | and no blanks',
    )
  requireFiles(new URLSearchParams(query), ['tlsCAFile', 'tlsCertificateKeyFile', 'tlsCRLFile'])
  return text
}

const escapes =
  'in the user and the password write @ as %40, : as %3A, / as %2F, ? as %3F, # as %23, % as %25'

function splitUrl(text: string, protocols: readonly string[]): { authority: string; rest: string } {
  const protocol = protocols.find(candidate => text.startsWith(`${candidate}//`))
  if (!protocol) throw new Error(`must be a URL that starts with ${protocols.join('// or ')}//`)
  const [authority] = /^[^/?#]*/.exec(text.slice(protocol.length + 2))!
  return { authority, rest: text.slice(protocol.length + 2 + authority.length) }
}

/** Whether a password has a `/` or `#`: it ends the authority, so that an `@` follows in the rest. */
const isUnescaped = (authority: string, rest: string): boolean =>
  rest.includes('#') || (!authority.includes('@') && /^[^?]*@/.test(rest))

function requirePorts(hosts: readonly string[]): void {
  for (const host of hosts) {
    const port = /:(\d+)$/.exec(host)?.[1]
    if (Number(port ?? 0) > 65_535) throw new Error(`has port ${port}: ports end at 65535`)
  }
}

function requireFiles(parameters: URLSearchParams, names: readonly string[]): void {
  for (const name of names) {
    const path = parameters.get(name)
    try {
      if (path !== null) accessSync(path, constants.R_OK)
    } catch {
      throw new Error(`names a file in ${name} that cannot be read: ${path}`)
    }
  }
}
