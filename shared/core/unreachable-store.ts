import type { Refusal } from '#shared/core/errors.ts'

/** By the message of the Refusal: what is out of reach, and the variable that says where it is. */
const stores: Record<string, readonly [name: string, variable: string]> = {
  'The database is out of reach': ['PostgreSQL', 'DATABASE_URL'],
  'The memory store is out of reach': ['MongoDB', 'MONGODB_URI'],
}

/**
 * Which database is out of reach, at which host, and why, for the operator: never with a user or a password.
 *
 * @returns null for another refusal
 */
export function describeUnreachableStore(
  { message, cause }: Refusal,
  env: Record<string, string | undefined>,
): string | null {
  const store = stores[message]
  if (!store) return null
  const [name, variable] = store
  const hosts = hostsIn(env[variable])
  const reason = reasonOf(cause)
  return `${name}${hosts && ` at ${hosts}`} is out of reach${reason && `: ${reason}`}
Check ${variable}, and that the server runs`
}

/**
 * The hosts of a connection string, with their ports; empty where they cannot be told from a password, which has
 * characters that are not escaped.
 */
function hostsIn(uri = ''): string {
  const [, authority = '', rest = ''] = /^[a-z+]+:\/\/([^/?#]*)(.*)$/i.exec(uri) ?? []
  if (rest.includes('@')) return ''
  return authority.slice(authority.lastIndexOf('@') + 1)
}

const depthMax = 8

/** The message of the first cause; empty where it has none, or may quote a connection string. */
function reasonOf(cause: unknown): string {
  let message = ''
  let error = cause
  for (let depth = 0; error instanceof Error && depth < depthMax; depth++) {
    message = error.message.split('\n', 1)[0] || message
    error = error instanceof AggregateError ? (error.errors[0] as unknown) : error.cause
  }
  return message.includes('@') ? '' : message
}
