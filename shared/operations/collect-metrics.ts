import type { Log } from '#shared/core/log.ts'
import type { VaultIndexes } from '#shared/search/index/vault-indexes.ts'
import type { Postgres, Query } from '#shared/storage/postgres/connect.ts'
import { countUnfinishedOperations } from '#shared/operations/operation-rows.postgres.ts'
import { readQueueStats } from '#shared/storage/queue/queue-stats.ts'
import { gauges, indexEvents, registry } from '#shared/core/metrics.ts'

type MetricsSource = { vaultIndexes: VaultIndexes; postgres: Postgres; log: Log }

/** The databases are queried at most this often, however many scrapes arrive. */
const databaseIntervalMs = 5_000

/**
 * The text of a scrape: counters since the start, and current values.
 *
 * @param countFaulty counts the organizations whose pipeline is faulty
 */
export function createMetricsCollector(
  backend: MetricsSource,
  countFaulty: (query: Query) => Promise<number>,
): () => Promise<{ type: string; text: string }> {
  const sample = createGaugeSampler(backend, countFaulty)
  return async () => {
    await sample()
    return { type: registry.contentType, text: await registry.metrics() }
  }
}

/**
 * Measures the gauges. When a database is out of reach its gauges are missing; the process's own metrics are always
 * there.
 */
export function createGaugeSampler(
  backend: MetricsSource,
  countFaulty: (query: Query) => Promise<number>,
): () => Promise<void> {
  let sampledAt = 0
  return async () => {
    sampleProcess(backend)
    if (Date.now() - sampledAt > databaseIntervalMs) {
      sampledAt = Date.now()
      await sampleDatabase(backend, countFaulty).catch((error: unknown) => {
        sampledAt = 0
        for (const name of databaseGauges) gauges[name].reset()
        backend.log.warn({ err: error }, 'metrics.database-unseen')
      })
    }
  }
}

const databaseGauges = [
  'queueJobs',
  'queueOldest',
  'deadJobs',
  'operations',
  'faultyOrganizations',
] as const

function sampleProcess({ vaultIndexes, postgres }: MetricsSource): void {
  gauges.indexBytes.set(vaultIndexes.bytes)
  gauges.indexBudget.set(vaultIndexes.budget)
  gauges.indexes.set(vaultIndexes.count)
  const { indexes, rows, expected } = vaultIndexes.loading
  gauges.loadingIndexes.set(indexes)
  gauges.loadingRows.set({ state: 'read' }, rows)
  gauges.loadingRows.set({ state: 'expected' }, expected)
  indexEvents.reset()
  for (const [event, count] of Object.entries(vaultIndexes.stats()))
    indexEvents.inc({ event }, count)
  for (const [state, count] of Object.entries(postgres.connections())) {
    gauges.connections.set({ state }, count)
  }
}

async function sampleDatabase(
  { postgres }: MetricsSource,
  countFaulty: (query: Query) => Promise<number>,
): Promise<void> {
  const [queues, operations, faulty] = await Promise.all([
    readQueueStats(postgres.query),
    countUnfinishedOperations(postgres.query),
    countFaulty(postgres.query),
  ])
  gauges.faultyOrganizations.set(faulty)
  for (const { name: queue, waiting, held, retrying, active, dead, oldestSeconds } of queues) {
    gauges.queueJobs.set({ queue, state: 'waiting' }, waiting + retrying - held)
    gauges.queueJobs.set({ queue, state: 'held' }, held)
    gauges.queueJobs.set({ queue, state: 'active' }, active)
    gauges.deadJobs.set({ queue }, dead)
    gauges.queueOldest.set({ queue }, oldestSeconds ?? 0)
  }
  gauges.operations.reset()
  for (const { state, count } of operations) gauges.operations.set({ state }, count)
}
