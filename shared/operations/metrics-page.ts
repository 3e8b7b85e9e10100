import type { Log } from '#shared/core/log.ts'
import type { Images } from '#shared/search/index/vault-indexes.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import { unfinishedOperations } from '#shared/operations/open-operations.postgres.ts'
import { queueDepths } from '#shared/storage/queue/queue-stats.ts'
import { gauges, imageEvents, registry } from '#shared/core/metrics.ts'

type Observed = { images: Images; postgres: Postgres; log: Log }

/** The databases are asked at most this often, however many look. */
const freshMs = 5_000

/**
 * The page a scrape gets: what was counted since the start, and what there is right now. A database out
 * of reach leaves its gauges out; what this process knows by itself is always there.
 */
export function metricsPage(backend: Observed): () => Promise<{ type: string; text: string }> {
  let looked = 0
  return async () => {
    lookAtProcess(backend)
    if (Date.now() - looked > freshMs) {
      looked = Date.now()
      await lookAtDatabase(backend).catch((error: unknown) => {
        looked = 0
        for (const name of ofDatabase) gauges[name].reset()
        backend.log.warn({ err: error }, 'metrics.database-unseen')
      })
    }
    return { type: registry.contentType, text: await registry.metrics() }
  }
}

const ofDatabase = ['queueJobs', 'queueOldest', 'deadJobs', 'operations'] as const

function lookAtProcess({ images, postgres }: Observed): void {
  gauges.imageBytes.set(images.bytes)
  gauges.imageBudget.set(images.budget)
  gauges.images.set(images.held)
  imageEvents.reset()
  for (const [event, count] of Object.entries(images.stats())) imageEvents.inc({ event }, count)
  for (const [state, count] of Object.entries(postgres.connections())) {
    gauges.connections.set({ state }, count)
  }
}

async function lookAtDatabase({ postgres }: Observed): Promise<void> {
  const [queues, operations] = await Promise.all([
    queueDepths(postgres.query),
    unfinishedOperations(postgres.query),
  ])
  for (const { queue, waiting, active, dead, oldestSeconds } of queues) {
    gauges.queueJobs.set({ queue, state: 'waiting' }, waiting)
    gauges.queueJobs.set({ queue, state: 'active' }, active)
    gauges.deadJobs.set({ queue }, dead)
    gauges.queueOldest.set({ queue }, oldestSeconds)
  }
  gauges.operations.reset()
  for (const { state, count } of operations) gauges.operations.set({ state }, count)
}
