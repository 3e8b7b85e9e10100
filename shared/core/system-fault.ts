import { diskFullHint, isDiskFull } from '#shared/core/disk-full.ts'

/** Causes below an error that are looked at. */
const depthMax = 5

/**
 * What an operator can change about an error of the system, of a server or of what leads to it, in sentences.
 *
 * @returns null where it is none of these.
 */
export function systemFault(error: unknown): string | null {
  // The messages of node-pg-migrate have the stack of the database's error in them.
  if (isDiskFull(error)) return `${firstLine(error)}\n${diskFullHint}`
  let current = error
  for (let depth = 0; current instanceof Error && depth < depthMax; depth++) {
    const fault = faultOf(current)
    if (fault !== null) return fault
    current = current.cause
  }
  return null
}

type SystemError = NodeJS.ErrnoException & { address?: string; port?: number }

function faultOf(error: SystemError): string | null {
  const { code = '', address, port } = error
  const message = firstLine(error)
  if (code === 'EADDRINUSE') return `Port ${port} on ${address} is in use; set PORT to another one`
  if (code === 'EACCES' && port) return `Port ${port} may not be opened by this user; set PORT`
  if (code === 'EADDRNOTAVAIL') return `${address} is no address of this machine; set HOST`
  // Wrong user or password, no TLS where it is asked for, or no such database.
  if (/^(?:28...|3D000)$/.test(code)) return `${message}; check DATABASE_URL`
  if (/^(?:CERT_|SELF_SIGNED_|DEPTH_ZERO_|UNABLE_TO_|ERR_TLS_)/.test(code))
    return `The certificate of a database is not trusted: ${message}\n${certificateHint}`
  if (message.includes('does not support SSL'))
    return 'PostgreSQL has no TLS there: take sslmode out of DATABASE_URL'
  if (code === '42501') return `${message}: the user of DATABASE_URL lacks a right\n${grantHint}`
  return null
}

const certificateHint =
  'Name the file of its authority: sslrootcert=/path/ca.pem in DATABASE_URL, tlsCAFile=/path/ca.pem in MONGODB_URI.\n' +
  'sslmode=no-verify in DATABASE_URL encrypts and checks no certificate'

const grantHint =
  'Its owner runs: grant create on database <database> to <user>; grant usage, create on schema public to <user>;'

const firstLine = (error: unknown): string => (error as Error).message.split('\n', 1)[0]!
