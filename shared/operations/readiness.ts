import { pendingMigrations } from '#shared/storage/postgres/migrate.ts'
import { queueDepths } from '#shared/storage/queue/queue-stats.ts'
import { ping } from '#shared/storage/postgres/connect.ts'
import type { Stores } from '#shared/storage/stores.ts'

/** What keeps a process from working, and how late its jobs are. */
type Readiness = { faults: string[]; lagSeconds: number }

/** A look asks both stores, and nobody who asks is counted: so many askers share one. */
const lookKeptMs = 250

/** Looks whether both stores answer and have seen this version's release step; never rejects. */
export function readinessOf({ postgres, mongo }: Stores): () => Promise<Readiness> {
  let last: { look: Promise<Readiness>; until: number } | undefined
  return () => {
    if (!last || last.until < performance.now()) {
      const fresh = { look: lookNow({ postgres, mongo }), until: Infinity }
      void fresh.look.then(() => (fresh.until = performance.now() + lookKeptMs))
      last = fresh
    }
    return last.look
  }
}

/** Never rejects: a store that does not answer is a fault among others. */
async function lookNow({ postgres, mongo }: Stores): Promise<Readiness> {
  let lagSeconds = 0
  const parts = {
    postgres: ping(postgres.query),
    migrations: pendingMigrations(postgres.query).then(refusePending),
    mongodb: mongo.ping(),
    queue: queueDepths(postgres.query).then(queues => {
      lagSeconds = Math.max(0, ...queues.map(({ oldestSeconds }) => oldestSeconds))
    }),
  }
  const faults = await Promise.all(Object.entries(parts).map(faultOf))
  return { faults: faults.filter(fault => fault !== null), lagSeconds }
}

const faultOf = ([part, work]: [string, Promise<unknown>]): Promise<string | null> =>
  work.then(
    () => null,
    (error: Error) => `${part}: ${error.message}`,
  )

function refusePending(names: string[]): void {
  if (names.length > 0) throw new Error(`the release step has not run (${names.join(', ')})`)
}
