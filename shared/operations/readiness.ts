import { pendingMigrations } from '#shared/storage/postgres/migrate.ts'
import { readQueueStats } from '#shared/storage/queue/queue-stats.ts'
import { ping } from '#shared/storage/postgres/connect.ts'
import { transactionPoolerLimitation } from '#shared/storage/postgres/pooler.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Embedders } from '#shared/models/embedders.ts'

/**
 * Faults that keep a process from working, the delay of its jobs, the embedding model that they wait for, and what works
 * in part only.
 */
type Readiness = {
  faults: string[]
  lagSeconds: number
  waitingFor: string | undefined
  limitations: string[]
}

type Observed = Stores & { embedders: Embedders }

/** A check queries both stores, and probes are not rate limited: concurrent probes share one. */
const readinessCacheMs = 250

/** Checks whether both stores answer and have this version's release step; never rejects. */
export function createReadinessCheck(backend: Observed): () => Promise<Readiness> {
  let last: { look: Promise<Readiness>; until: number } | undefined
  return () => {
    if (!last || last.until < performance.now()) {
      const fresh = { look: probeStores(backend), until: Infinity }
      void fresh.look.then(() => (fresh.until = performance.now() + readinessCacheMs))
      last = fresh
    }
    return last.look
  }
}

/** Never rejects: a store that does not answer is one of the faults. */
async function probeStores({ postgres, mongo, embedders }: Observed): Promise<Readiness> {
  let lagSeconds = 0
  const limitations: string[] = []
  const checks = {
    postgres: ping(postgres.query),
    migrations: pendingMigrations(postgres.query).then(requireNoPending),
    mongodb: mongo.ping(),
    pooler: postgres.pooler().then(pooler => {
      if (pooler === 'transaction') limitations.push(transactionPoolerLimitation)
    }),
    queue: readQueueStats(postgres.query).then(queues => {
      lagSeconds = Math.max(0, ...queues.map(({ oldestSeconds }) => oldestSeconds ?? 0))
    }),
  }
  const faults = await Promise.all(Object.entries(checks).map(describeFault))
  const model = embedders.defaultModel
  const breaker = embedders.breakerOf(model)
  // The default one alone: which others clients have named is no one's business.
  const waitingFor = breaker?.isAway ? `${model}: ${breaker.reason}` : undefined
  return { faults: faults.filter(fault => fault !== null), lagSeconds, waitingFor, limitations }
}

const describeFault = ([checkName, work]: [string, Promise<unknown>]): Promise<string | null> =>
  work.then(
    () => null,
    (error: Error) => `${checkName}: ${error.message}`,
  )

function requireNoPending(names: string[]): void {
  if (names.length > 0) throw new Error(`the release step has not run (${names.join(', ')})`)
}

/** The answer of a process without faults. */
export const presentReadiness = ({
  lagSeconds,
  waitingFor,
  limitations,
}: Omit<Readiness, 'faults'>) => ({
  status: 'ok',
  queue_lag_seconds: lagSeconds,
  ...(waitingFor !== undefined && { waiting_for: waitingFor }),
  ...(limitations.length > 0 && { limitations }),
})
