/**
 * How long a test waits for a connection, and for an answer of a store. A machine that is busy with other
 * tests can stand still for longer than the two and five seconds of the service; tests of an outage keep those.
 */
const deadlines: Record<string, Record<string, string>> = {
  'postgres:': { connect_timeout: '30', query_timeout: '60000' },
  'mongodb:': {
    connectTimeoutMS: '30000',
    serverSelectionTimeoutMS: '30000',
    socketTimeoutMS: '60000',
  },
}

/** The connection string with the deadlines of tests. */
export const withConnectDeadlines = (url: string): string =>
  Object.entries(deadlinesOf(url)).reduce(
    (text, [name, value]) => `${text}${text.includes('?') ? '&' : '?'}${name}=${value}`,
    withoutConnectDeadlines(url),
  )

/** The connection string with the deadlines of the service. */
export const withoutConnectDeadlines = (url: string): string =>
  Object.entries(deadlinesOf(url)).reduce(
    (text, [name, value]) =>
      text.replace(new RegExp(`([?&])${name}=${value}(&|$)`), (_, before: string, after: string) =>
        after ? before : '',
      ),
    url,
  )

const deadlinesOf = (url: string) => deadlines[new URL(url).protocol.replace('ql:', ':')] ?? {}
