import { pendingMigrations } from '#shared/storage/postgres/migrate.ts'
import { readQueueStats } from '#shared/storage/queue/queue-stats.ts'
import { ping } from '#shared/storage/postgres/connect.ts'
import type { Stores } from '#shared/storage/stores.ts'

/** What keeps a process from working, and how late its jobs are. */
type Readiness = { faults: string[]; lagSeconds: number }

/** A look asks both stores, and nobody who asks is counted: so many askers share one. */
const readinessCacheMs = 250

/** Looks whether both stores answer and have seen this version's release step; never rejects. */
export function createReadinessCheck({ postgres, mongo }: Stores): () => Promise<Readiness> {
  let last: { look: Promise<Readiness>; until: number } | undefined
  return () => {
    if (!last || last.until < performance.now()) {
      const fresh = { look: probeStores({ postgres, mongo }), until: Infinity }
      void fresh.look.then(() => (fresh.until = performance.now() + readinessCacheMs))
      last = fresh
    }
    return last.look
  }
}

/** Never rejects: a store that does not answer is a fault among others. */
async function probeStores({ postgres, mongo }: Stores): Promise<Readiness> {
  let lagSeconds = 0
  const checks = {
    postgres: ping(postgres.query),
    migrations: pendingMigrations(postgres.query).then(requireNoPending),
    mongodb: mongo.ping(),
    queue: readQueueStats(postgres.query).then(queues => {
      lagSeconds = Math.max(0, ...queues.map(({ oldestSeconds }) => oldestSeconds ?? 0))
    }),
  }
  const faults = await Promise.all(Object.entries(checks).map(describeFault))
  return { faults: faults.filter(fault => fault !== null), lagSeconds }
}

const describeFault = ([checkName, work]: [string, Promise<unknown>]): Promise<string | null> =>
  work.then(
    () => null,
    (error: Error) => `${checkName}: ${error.message}`,
  )

function requireNoPending(names: string[]): void {
  if (names.length > 0) throw new Error(`the release step has not run (${names.join(', ')})`)
}
