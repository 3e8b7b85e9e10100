import { diag, DiagLogLevel, logs } from '@opentelemetry/api'
import { OTLPMetricExporter as GrpcExporter } from '@opentelemetry/exporter-metrics-otlp-grpc'
import { OTLPMetricExporter as JsonExporter } from '@opentelemetry/exporter-metrics-otlp-http'
import { OTLPMetricExporter as ProtobufExporter } from '@opentelemetry/exporter-metrics-otlp-proto'
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources'
import { PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import { NodeSDK } from '@opentelemetry/sdk-node'
import type { TelemetrySignals } from '#shared/core/config.ts'
import type { Log } from '#shared/core/log.ts'
import { RegistryProducer } from '#shared/core/telemetry/metric-data.ts'
import { toLogRecord } from '#shared/core/telemetry/log-record.ts'
import { withTimeout } from '#shared/core/with-timeout.ts'

/** The exporters of a process. */
export type Telemetry = {
  /** Takes lines of the log, one JSON object each. */
  logStream: { write(line: string): void }
  /**
   * Tells faults of the exporters in the log from now on.
   *
   * @param sample measures the gauges, before each export of metrics
   */
  attach(log: Log, sample: () => Promise<void>): void
  /** Exports what is left, for at most 3 seconds. */
  stop(): Promise<void>
}

/** What remains of a shutdown belongs to requests and jobs. */
const flushTimeoutMs = 3_000

/** An endpoint that is away fails every export: one line in this time is enough. */
const faultIntervalMs = 60_000

/**
 * Registers the SDK, which reads the standard `OTEL_` variables of the process itself. Metrics are those of the
 * process's registry, so their reader is made here.
 */
export function startSdk(signals: TelemetrySignals, role: string): Telemetry {
  const producer = new RegistryProducer()
  const sdk = new NodeSDK({
    resource: defaultResource().merge(
      resourceFromAttributes({ 'service.name': 'memory-vault', 'memory_vault.process': role }),
    ),
    metricReaders: signals.metrics ? [metricReader(signals.metrics, producer)] : [],
    ...(!signals.traces && { spanProcessors: [] }),
    ...(!signals.logs && { logRecordProcessors: [] }),
  })
  sdk.start()
  const logger = logs.getLogger('memory-vault')
  return {
    logStream: { write: line => logger.emit(toLogRecord(line)) },
    attach(log, sample) {
      producer.sample = sample
      reportFaults(log)
    },
    stop: () => withTimeout(sdk.shutdown(), flushTimeoutMs, () => undefined),
  }
}

const metricExporters = {
  grpc: GrpcExporter,
  'http/json': JsonExporter,
  'http/protobuf': ProtobufExporter,
}

/** The exporter reads endpoint, headers, timeout, compression and certificates from the environment. */
const metricReader = (
  { protocol, intervalMs, timeoutMs }: NonNullable<TelemetrySignals['metrics']>,
  producer: RegistryProducer,
) =>
  new PeriodicExportingMetricReader({
    exporter: new metricExporters[protocol](),
    exportIntervalMillis: intervalMs,
    exportTimeoutMillis: Math.min(timeoutMs, intervalMs),
    metricProducers: [producer],
  })

/** Errors of the SDK become lines of the log; `OTEL_LOG_LEVEL` has it print them itself. */
function reportFaults(log: Log): void {
  let toldAt = -Infinity
  const tell = (message: string): void => {
    if (performance.now() - toldAt < faultIntervalMs) return
    toldAt = performance.now()
    log.warn({ reason: faultReason(message) }, 'telemetry.failed')
  }
  const ignore = (): void => {}
  diag.setLogger(
    { error: tell, warn: ignore, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.ERROR, suppressOverrideMessage: true },
  )
}

/** The SDK tells an exception as a JSON object of its fields. */
function faultReason(message: string): string {
  try {
    const { code, message: text } = JSON.parse(message) as { code?: string; message?: string }
    return [code, text].filter(Boolean).join(': ').slice(0, 200)
  } catch {
    return message.slice(0, 200)
  }
}
