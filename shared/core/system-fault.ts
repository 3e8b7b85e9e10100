/**
 * What an operator can change about an error of the system or of a server, in sentences.
 *
 * @returns null for all other errors.
 */
export function systemFault(error: unknown): string | null {
  // The messages of node-pg-migrate have the stack of the database's error in them.
  if (isDiskFull(error)) return `${firstLine(error)}\n${diskFullHint}`
  return (
    errorsOf(error)
      .map(faultOf)
      .find(fault => fault !== null) ?? null
  )
}

type SystemError = NodeJS.ErrnoException & { address?: string; port?: number }

const depthMax = 5

/** An error and what caused it. */
function errorsOf(error: unknown): SystemError[] {
  const errors: SystemError[] = []
  for (let current = error; current instanceof Error && errors.length < depthMax;) {
    errors.push(current)
    current = current.cause
  }
  return errors
}

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

/** `disk_full` of PostgreSQL, `OutOfDiskSpace` of MongoDB, and the system's own. */
const diskFullCodes = new Set<unknown>(['53100', 14_031, 'ENOSPC'])

const diskFullWords = /No space left on device|OutOfDiskSpace|ENOSPC/i

/** Whether an error, or what caused it, is a full disk: here, of PostgreSQL or of MongoDB. */
export const isDiskFull = (error: unknown): boolean =>
  errorsOf(error).some(
    ({ code, message }) => diskFullCodes.has(code) || diskFullWords.test(message),
  )

export const diskFullHint =
  'No space is left on the disk of a database: free some, then start again. What was stored stays'
