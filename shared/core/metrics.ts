import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import { RecentCounts } from '#shared/core/recent-counts.ts'
import gaugeTable from '#shared/core/gauges.json' with { type: 'json' }

/** A value of a metric; of a histogram it has the name of the metric and `_bucket`, `_sum` or `_count`. */
export type MetricSample = {
  value: number
  labels: Record<string, string | number>
  metricName?: string
}

export type MetricSamples = {
  name: string
  help: string
  type: 'counter' | 'gauge' | 'histogram' | 'summary'
  values: MetricSample[]
}

/**
 * Adds prom-client's own metrics at the first reading: their monitor of the event loop, 100 timers a second, is 0.4 %
 * of a core of an idle process that nothing reads.
 */
export class ProcessRegistry extends Registry {
  #isRead = false

  override metrics(): Promise<string> {
    this.#addProcessMetrics()
    return super.metrics()
  }

  /** The values behind a scrape. */
  async samples(): Promise<MetricSamples[]> {
    this.#addProcessMetrics()
    // The library's type has numbers where it returns the words.
    return (await this.getMetricsAsJSON()) as unknown as MetricSamples[]
  }

  #addProcessMetrics(): void {
    if (!this.#isRead) collectDefaultMetrics({ register: this })
    this.#isRead = true
  }
}

/** The metrics of this process, in Prometheus' text format. */
export const registry = new ProcessRegistry()

const registers = [registry]
const latencyBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

const createHistogram = <Label extends string>(
  name: string,
  help: string,
  labelNames: Label[],
  buckets = latencyBuckets,
) => new Histogram({ name, help, labelNames, buckets, registers })

const createGauge = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
  new Gauge({ name, help, labelNames, registers })

const createCounter = <Label extends string>(name: string, help: string, ...labelNames: Label[]) =>
  new Counter({ name, help, labelNames, registers })

/** Labelled by route pattern, never by path: a path may hold a key, and labels are kept forever. */
export const requestSeconds = createHistogram(
  'vault_request_seconds',
  'Time from the arrival of a request to its answer',
  ['method', 'route', 'status'],
)

/**
 * Requests below /v1 of the last 15 minutes, by the bucket of their time: a summary of prom-client takes 9 µs a
 * request.
 */
const recentRequests = new RecentCounts(latencyBuckets.length + 1)

export function countRecentRequest(seconds: number): void {
  const bucket = latencyBuckets.findIndex(bound => seconds <= bound)
  recentRequests.add(bucket === -1 ? latencyBuckets.length : bucket)
}

const recentP95 = new Gauge({
  name: 'vault_recent_request_p95_seconds',
  help: 'Time in which 95 % of the requests below /v1 of the last 15 minutes were answered; none: 0',
  registers,
  collect() {
    const counts = recentRequests.sums()
    const total = counts.reduce((sum, count) => sum + count, 0)
    let below = 0
    const bucket = counts.findIndex(count => (below += count) >= 0.95 * total)
    this.set(total === 0 ? 0 : (latencyBuckets[bucket] ?? 60))
  },
})
void recentP95

export const recallSeconds = createHistogram(
  'vault_recall_seconds',
  'Time of the stages of a search: embed the question, load the index, rank, rerank',
  ['stage'],
)

/** Model calls, prepares and searches; what MCP tools ask counts as what they ask it by. */
export const recalls = createCounter(
  'vault_recalls_total',
  'Calls that may recall, by what they came to: ok, none, off, degraded (went on without memory), aside',
  'way',
  'status',
)

export const blockTokens = createHistogram(
  'vault_block_tokens',
  'Tokens of a block of memories, where there is one',
  ['way'],
  [50, 100, 200, 400, 800, 1_500, 3_000, 6_000],
)

export const memoriesStored = createCounter(
  'vault_memories_stored_total',
  'Memories that this process has stored from exchanges',
)

export const providerSeconds = createHistogram(
  'vault_provider_seconds',
  'Time until a model provider answered, by status; 0 when it never did',
  ['provider', 'status'],
  [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120],
)

export const jobSeconds = createHistogram('vault_job_batch_seconds', 'Time a batch of jobs took', [
  'queue',
  'outcome',
])

/** Gauges that are measured only when a scrape asks for them. */
export const gauges = Object.fromEntries(
  Object.entries(gaugeTable).map(([key, [name = '', help = '', ...labels]]) => [
    key,
    createGauge(name, help, ...labels),
  ]),
) as Record<keyof typeof gaugeTable, Gauge>

export const indexEvents = createCounter(
  'vault_index_events_total',
  'Vault indexes found, loaded, brought up to date and given up',
  'event',
)

export const dependencyState = createGauge(
  'vault_dependency_state',
  'Whether a dependency answers, as its last probe found: 0 it does, 1 late, 2 not, 3 it refuses',
  'dependency',
)

export const transactionRetries = createCounter(
  'vault_transaction_retries_total',
  'Transactions run again after a deadlock (40P01) or a serialization failure (40001)',
  'code',
)

export const embeddingsSplit = createCounter(
  'vault_embedding_split_texts_total',
  'Texts too long for their embedding model, embedded in parts',
)

export const embeddingsRefused = createCounter(
  'vault_embedding_refused_texts_total',
  'Texts that their embedding model refuses, however short their parts',
)
