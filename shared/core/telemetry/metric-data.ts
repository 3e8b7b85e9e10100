import { ValueType, type Attributes, type HrTime } from '@opentelemetry/api'
import { emptyResource } from '@opentelemetry/resources'
import {
  AggregationTemporality,
  DataPointType,
  type CollectionResult,
  type DataPoint,
  type Histogram,
  type MetricData,
  type MetricProducer,
} from '@opentelemetry/sdk-metrics'
import { registry, type MetricSamples, type MetricSample } from '#shared/core/metrics.ts'

/** Gives the metrics of the process to an exporter, under the names that a scrape has; sums count from its start. */
export class RegistryProducer implements MetricProducer {
  /** Measures the gauges. */
  sample: () => Promise<void> = async () => {}
  readonly #startTime = toHrTime(performance.timeOrigin)

  async collect(): Promise<CollectionResult> {
    const errors: unknown[] = []
    await this.sample().catch((error: unknown) => errors.push(error))
    const times = { startTime: this.#startTime, endTime: toHrTime(Date.now()) }
    const metrics = (await registry.samples()).flatMap(samples => toMetricData(samples, times))
    const scopeMetrics = [{ scope: { name: 'memory-vault' }, metrics }]
    return { resourceMetrics: { resource: emptyResource(), scopeMetrics }, errors }
  }
}

const toHrTime = (ms: number): HrTime => [Math.floor(ms / 1_000), Math.round((ms % 1_000) * 1e6)]

/** @returns none for a metric without values. */
function toMetricData(
  { name, help, type, values: all }: MetricSamples,
  times: Pick<DataPoint<number>, 'startTime' | 'endTime'>,
): MetricData[] {
  // JSON has no NaN: a collector would refuse the whole export.
  const values = all.filter(({ value }) => Number.isFinite(value))
  if (values.length === 0) return []
  const base = {
    descriptor: { name, description: help, unit: '', valueType: ValueType.DOUBLE },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  } as const
  if (type === 'histogram') {
    const dataPoints = toHistograms(name, values).map(point => ({ ...times, ...point }))
    return [{ ...base, dataPointType: DataPointType.HISTOGRAM, dataPoints }]
  }
  const dataPoints = values.map(({ labels, value }) => ({ ...times, attributes: labels, value }))
  return type === 'counter'
    ? [{ ...base, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints }]
    : [{ ...base, dataPointType: DataPointType.GAUGE, dataPoints }]
}

/** Prometheus' buckets count all values up to their bound; OpenTelemetry's count the values of each alone. */
function toHistograms(
  name: string,
  values: readonly MetricSample[],
): { attributes: Attributes; value: Histogram }[] {
  const series = Map.groupBy(values, ({ labels }) => JSON.stringify({ ...labels, le: undefined }))
  return [...series.values()].map(samples => {
    const { le: _, ...attributes } = samples[0]!.labels
    const valueOf = (suffix: string): number =>
      samples.find(({ metricName }) => metricName === `${name}_${suffix}`)?.value ?? 0
    const upTo = samples.filter(({ metricName }) => metricName === `${name}_bucket`)
    return {
      attributes,
      value: {
        buckets: {
          boundaries: upTo.flatMap(({ labels: { le } }) => (le === '+Inf' ? [] : Number(le))),
          counts: upTo.map(({ value }, at) => value - (upTo[at - 1]?.value ?? 0)),
        },
        count: valueOf('count'),
        sum: valueOf('sum'),
      },
    }
  })
}
