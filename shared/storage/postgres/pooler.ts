import pg from 'pg'
import type { Log } from '#shared/core/log.ts'

/**
 * The link between the service and PostgreSQL: direct, or a pooler that gives each client a connection of the server
 * for its session, or for one transaction only.
 */
export type Pooler = 'none' | 'session' | 'transaction'

/** The limits under a pooler in transaction mode, for those who run the service. */
export const transactionPoolerLimitation =
  'PostgreSQL is behind a pooler in transaction mode: LISTEN does not work, so jobs begin and waiting requests are answered up to a second later'

/** Logs at a start the limits under a pooler. */
export function logPooler(log: Log, pooler: Pooler): Pooler {
  if (pooler === 'transaction')
    log.warn({ limitation: transactionPoolerLimitation }, 'postgres.pooler')
  return pooler
}

const looksMax = 3

/**
 * Finds out by the numbers of the server's processes: a pooler gives a client a number of its own at connecting, and in
 * transaction mode a client has several processes, or two clients have the same.
 */
export async function findPooler(settings: pg.ClientConfig): Promise<Pooler> {
  return withClient(settings, async one => {
    const told = (one as pg.Client & { processID: number }).processID
    if ((await readProcess(one)) === told) return 'none'
    return withClient(settings, async two => {
      const seen = [new Set<number>(), new Set<number>()] as const
      for (let look = 0; look < looksMax; look++) {
        // Twice each: a pooler that takes its connections in turn would give each client the same again.
        for (const client of [one, one]) seen[0].add(await readProcess(client))
        for (const client of [two, two]) seen[1].add(await readProcess(client))
      }
      const isSession = seen[0].size === 1 && seen[1].size === 1 && seen[0].isDisjointFrom(seen[1])
      return isSession ? 'session' : 'transaction'
    })
  })
}

async function readProcess(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  return rows[0]!.pid
}

async function withClient<Result>(
  settings: pg.ClientConfig,
  work: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client(settings)
  // A connection that is lost fails the statement under way.
  client.on('error', () => {})
  try {
    await client.connect()
    return await work(client)
  } finally {
    await client.end()
  }
}
