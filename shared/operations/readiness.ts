import { pendingMigrations } from '#shared/storage/postgres/migrate.ts'
import { readQueueStats } from '#shared/storage/queue/queue-stats.ts'
import { ping } from '#shared/storage/postgres/connect.ts'
import { transactionPoolerLimitation } from '#shared/storage/postgres/pooler.ts'
import type { Stores } from '#shared/storage/stores.ts'
import type { Embedders } from '#shared/models/embedders.ts'

/** What the service depends on, as the last probe of this process found it. */
type ServicePart = {
  name: 'postgres' | 'mongodb' | 'queue' | 'embeddings'
  state: 'ok' | 'late' | 'down'
  /** The first probe of the state, in epoch milliseconds. */
  since: number
  /** Milliseconds of the probe; null where none was made for it. */
  latencyMs: number | null
  /** Why it was not `ok` last, and when that was seen first. */
  lastFault: { at: number; words: string } | null
}

/**
 * Faults that keep a process from working, the delay of its jobs, the embedding model that they wait for, what works
 * in part only, and each part with its state.
 */
type Readiness = {
  faults: string[]
  lagSeconds: number
  waitingFor: string | undefined
  limitations: string[]
  parts: ServicePart[]
}

/** A check queries both stores, and probes are not rate limited: concurrent probes share one. */
const readinessCacheMs = 250

/** Checks whether both stores answer and have this version's release step; never rejects. */
export function createReadinessCheck(
  backend: Stores & { embedders: Embedders },
): () => Promise<Readiness> {
  let last: { look: Promise<Readiness>; until: number } | undefined
  const known = new Map<string, ServicePart>()
  return () => {
    if (!last || last.until < performance.now()) {
      const fresh = { look: probeStores(backend, known), until: Infinity }
      void fresh.look.then(() => (fresh.until = performance.now() + readinessCacheMs))
      last = fresh
    }
    return last.look
  }
}

/** A job that is due for longer waits for a worker that is not there. */
const lagMaxSeconds = 60

/**
 * Never rejects: a store that does not answer is one of the faults.
 *
 * @param known the parts as the probe before found them
 */
async function probeStores(
  { postgres, mongo, embedders }: Stores & { embedders: Embedders },
  known: Map<string, ServicePart>,
): Promise<Readiness> {
  let lagSeconds = 0
  const limitations: string[] = []
  const begunAt = performance.now()
  const latency: Record<string, number> = {}
  const timed = (name: string, work: Promise<unknown>): Promise<unknown> =>
    work.finally(() => (latency[name] = Math.round(performance.now() - begunAt)))
  const checks = {
    postgres: timed('postgres', ping(postgres.query)),
    migrations: pendingMigrations(postgres.query).then(requireNoPending),
    mongodb: timed('mongodb', mongo.ping()),
    pooler: postgres.pooler().then(pooler => {
      if (pooler === 'transaction') limitations.push(transactionPoolerLimitation)
    }),
    queue: readQueueStats(postgres.query).then(queues => {
      lagSeconds = Math.max(0, ...queues.map(({ oldestSeconds }) => oldestSeconds ?? 0))
    }),
  }
  const described = await Promise.all(Object.entries(checks).map(describeFault))
  const faults = described.filter(fault => fault !== null)
  const model = embedders.defaultModel
  const breaker = embedders.breakerOf(model)
  // The default one alone: which others clients have named is no one's business.
  const waitingFor = breaker?.isAway ? `${model}: ${breaker.reason}` : undefined
  const faultOf = (name: string): string | undefined =>
    faults.find(fault => fault.startsWith(`${name}: `))?.slice(name.length + 2)
  const late =
    breaker?.state === 'slow' ? `${model}: ${breaker.reason ?? 'answers late'}` : undefined
  const lag =
    lagSeconds > lagMaxSeconds
      ? `the oldest job waits for ${Math.round(lagSeconds)} s: no worker takes it`
      : undefined
  const found = [
    ['postgres', faultOf('postgres') ?? faultOf('migrations'), undefined],
    ['mongodb', faultOf('mongodb'), undefined],
    ['queue', undefined, lag],
    ['embeddings', waitingFor, late],
  ] as const
  const parts = found.map(([name, down, late]) => {
    const state = down !== undefined ? 'down' : late !== undefined ? 'late' : 'ok'
    return notePart(known, name, { state, words: down ?? late, latencyMs: latency[name] ?? null })
  })
  return { faults, lagSeconds, waitingFor, limitations, parts }
}

/** A part as it is now, with since when. */
function notePart(
  known: Map<string, ServicePart>,
  name: ServicePart['name'],
  {
    state,
    words,
    latencyMs,
  }: Pick<ServicePart, 'state' | 'latencyMs'> & { words: string | undefined },
): ServicePart {
  const before = known.get(name)
  const since = before?.state === state ? before.since : Date.now()
  const lastFault = words === undefined ? (before?.lastFault ?? null) : { at: since, words }
  const part = { name, state, since, latencyMs, lastFault }
  known.set(name, part)
  return part
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
  parts,
}: Omit<Readiness, 'faults'>) => ({
  status: 'ok',
  queue_lag_seconds: lagSeconds,
  ...(waitingFor !== undefined && { waiting_for: waitingFor }),
  ...(limitations.length > 0 && { limitations }),
  parts: presentParts(parts),
})

export const presentParts = (parts: readonly ServicePart[]) =>
  parts.map(({ name, state, since, latencyMs, lastFault }) => ({
    name,
    state,
    since: new Date(since).toISOString(),
    latency_ms: latencyMs,
    last_fault: lastFault && { at: new Date(lastFault.at).toISOString(), words: lastFault.words },
  }))
