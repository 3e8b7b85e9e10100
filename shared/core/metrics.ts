import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import { eventLoopLagNames, registerEventLoopLag } from '#shared/core/event-loop-lag.ts'

/** The metrics of this process, in Prometheus' text format. */
export const registry = new Registry()
// Its monitor of the event loop cannot be left out: one that looks once an hour costs nothing, and ours has its names.
collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 3_600_000 })
for (const name of eventLoopLagNames) registry.removeSingleMetric(name)
registerEventLoopLag(registry)

const registers = [registry]
const latencyBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** Labelled by route pattern, never by path: a path may hold a key, and labels are kept forever. */
export const requestSeconds = new Histogram({
  name: 'vault_request_seconds',
  help: 'Time from the arrival of a request to its answer',
  labelNames: ['method', 'route', 'status'],
  buckets: latencyBuckets,
  registers,
})

export const recallSeconds = new Histogram({
  name: 'vault_recall_seconds',
  help: 'Time of the stages of a search: embed the question, load the index, rank, rerank',
  labelNames: ['stage'],
  buckets: latencyBuckets,
  registers,
})

export const providerSeconds = new Histogram({
  name: 'vault_provider_seconds',
  help: 'Time until a model provider answered, by status; 0 when it never did',
  labelNames: ['provider', 'status'],
  buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120],
  registers,
})

export const jobSeconds = new Histogram({
  name: 'vault_job_batch_seconds',
  help: 'Time a batch of jobs took',
  labelNames: ['queue', 'outcome'],
  buckets: latencyBuckets,
  registers,
})

const createGauge = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
  new Gauge({ name, help, labelNames, registers })

/** Gauges that are measured only when a scrape asks for them. */
export const gauges = {
  indexBytes: createGauge('vault_index_bytes', 'Memory of the vault indexes held'),
  indexBudget: createGauge('vault_index_budget_bytes', 'Memory that vault indexes may take'),
  indexes: createGauge('vault_indexes', 'Vault indexes held'),
  loadingIndexes: createGauge('vault_indexes_loading', 'Vault indexes being loaded'),
  loadingRows: createGauge(
    'vault_index_loading_rows',
    'Memories of the vault indexes being loaded, by state: read so far, and expected in all',
    'state',
  ),
  queueJobs: createGauge(
    'vault_queue_jobs',
    'Jobs in the queue, by state; held ones wait for what does not answer',
    'queue',
    'state',
  ),
  queueOldest: createGauge(
    'vault_queue_oldest_seconds',
    'Age of the oldest job that is due',
    'queue',
  ),
  deadJobs: createGauge('vault_queue_dead_jobs', 'Jobs given up, waiting for an operator', 'queue'),
  operations: createGauge('vault_operations', 'Operations that are not over, by state', 'state'),
  connections: createGauge(
    'vault_postgres_connections',
    'Connections of the pool, by state',
    'state',
  ),
}

export const indexEvents = new Counter({
  name: 'vault_index_events_total',
  help: 'Vault indexes found, loaded, brought up to date and given up',
  labelNames: ['event'],
  registers,
})

export const dependencyState = new Gauge({
  name: 'vault_dependency_state',
  help: 'Whether a dependency answers, as its last probe found: 0 it does, 1 late, 2 not, 3 it refuses',
  labelNames: ['dependency'],
  registers,
})

export const transactionRetries = new Counter({
  name: 'vault_transaction_retries_total',
  help: 'Transactions run again after a deadlock (40P01) or a serialization failure (40001)',
  labelNames: ['code'],
  registers,
})

export const embeddingsSplit = new Counter({
  name: 'vault_embedding_split_texts_total',
  help: 'Texts too long for their embedding model, embedded in parts',
  registers,
})

export const embeddingsRefused = new Counter({
  name: 'vault_embedding_refused_texts_total',
  help: 'Texts that their embedding model refuses, however short their parts',
  registers,
})
