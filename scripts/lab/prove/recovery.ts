import type { Cluster } from '#scripts/lab/prove/cluster.ts'
import {
  createTimeLimit,
  Faults,
  type Figure,
  type SectionContext,
  type SectionResult,
} from '#scripts/lab/prove/section.ts'
import type { StoreName } from '#scripts/lab/prove/stores.ts'

/** What is ended, and what is asked until it is answered with a 2xx again. */
type Loss = { name: string; run: () => Promise<number> }

/** Seconds that each of them may take: the page on high availability promises that. */
const most = 60
const lookEveryMs = 20
const settleMs = 180_000
/** Jobs that a killed worker has to lose. */
const exchanges = 200

/**
 * Kills one part at a time, without other load, and measures the seconds until requests are answered with a 2xx again: the
 * recovery time. A database is started again at once, so that its own recovery is in the figure.
 */
export async function proveRecovery(context: SectionContext): Promise<SectionResult> {
  const { cluster, stores, ms } = context
  const faults = new Faults()
  const key = await cluster.createAccount('recovery')
  const web = (): number => cluster.running.find(index => cluster.isWeb(index))!
  const worker = (): number => cluster.running.find(index => !cluster.isWeb(index))!
  const losses: Loss[] = [
    {
      name: 'a web process: another one answers',
      run: async () => {
        const back = cluster.kill(web())
        const seconds = await secondsUntil(() => isAnswered(cluster, key))
        await back
        return seconds
      },
    },
    {
      name: 'a web process: itself, started again, answers',
      run: async () => {
        const index = web()
        const startedAt = performance.now()
        await cluster.kill(index)
        await secondsUntil(() => isAnsweredBy(cluster, key, cluster.portOf(index)))
        return secondsSince(startedAt)
      },
    },
    {
      name: 'a worker with jobs: all of them are stored',
      run: async () => {
        // The worker is killed in the midst of them.
        const sent = Array.from({ length: exchanges }, (_, n) => store(cluster, key, n))
        await sent[0]
        const startedAt = performance.now()
        const back = cluster.kill(worker())
        await Promise.all(sent)
        await cluster.settle(settleMs)
        const seconds = secondsSince(startedAt)
        await back
        return seconds
      },
    },
    ...(stores
      ? [
          databaseLoss('postgres', 'Postgres: exchanges are accepted', () =>
            isStored(cluster, key),
          ),
          databaseLoss('postgres', 'Postgres: searches are answered', () =>
            isAnswered(cluster, key),
          ),
          databaseLoss('mongodb', 'MongoDB: exchanges that are waited for are stored', () =>
            isStored(cluster, key, '?wait=true'),
          ),
          databaseLoss('mongodb', 'MongoDB: searches are answered', () => isAnswered(cluster, key)),
        ]
      : []),
  ]
  const seconds = new Map<string, number[]>()
  const isOver = createTimeLimit(ms)
  do {
    for (const { name, run } of losses) {
      const taken = await run()
      seconds.set(name, [...(seconds.get(name) ?? []), taken])
      if (taken > most) faults.add(`${name}: ${taken.toFixed(1)} s`)
      await cluster.settle(settleMs)
    }
  } while (!isOver())
  return {
    figures: [
      { name: 'rounds', value: seconds.get(losses[0]!.name)!.length },
      ...losses.flatMap(({ name }) => slowest(name, seconds.get(name)!)),
    ],
    faults: faults.first,
  }

  function databaseLoss(name: StoreName, what: string, isBack: () => Promise<boolean>): Loss {
    return {
      name: what,
      run: async () => {
        const startedAt = performance.now()
        await stores!.end(name, 'kill')
        await stores!.begin(name)
        await secondsUntil(isBack)
        return secondsSince(startedAt)
      },
    }
  }
}

/** The slowest of several rounds counts. */
const slowest = (name: string, seconds: readonly number[]): Figure[] => [
  { name, value: Math.max(...seconds), unit: 's', most },
]

const secondsSince = (startedAt: number): number => (performance.now() - startedAt) / 1_000

async function secondsUntil(isBack: () => Promise<boolean>): Promise<number> {
  const startedAt = performance.now()
  while (!(await isBack()) && secondsSince(startedAt) < 2 * most) {
    await new Promise(resolve => setTimeout(resolve, lookEveryMs))
  }
  return secondsSince(startedAt)
}

const isSuccess = (status: number): boolean => status >= 200 && status < 300

const isAnsweredBy = async (cluster: Cluster, key: string, port: number): Promise<boolean> => {
  const body = { query: 'what is stored', limit: 1 }
  return isSuccess((await cluster.send(port, key, '/v1/memory/search', { body })).status)
}

/** Whether any web process answers a search, as behind a load balancer that tries the next one. */
async function isAnswered(cluster: Cluster, key: string): Promise<boolean> {
  for (const port of cluster.ports) if (await isAnsweredBy(cluster, key, port)) return true
  return false
}

async function store(cluster: Cluster, key: string, n: number, query = ''): Promise<boolean> {
  const body = { messages: [{ role: 'user', content: `What is stored has the number ${n}` }] }
  const port = cluster.ports[n % cluster.ports.length]
  if (port === undefined) return false
  const { status } = await cluster.send(port, key, `/v1/memory/ingest${query}`, { body })
  // A 202 to a request that waits says that it is not stored yet.
  return query === '' ? isSuccess(status) : status === 200
}

const isStored = (cluster: Cluster, key: string, query = ''): Promise<boolean> =>
  store(cluster, key, Math.floor(performance.now()), query)
