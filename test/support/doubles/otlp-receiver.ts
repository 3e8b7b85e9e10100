import { gunzipSync } from 'node:zlib'
import type { Test } from 'tap'
import {
  startRecordingServer,
  type RecordingServer,
} from '#test/support/doubles/recording-server.ts'

type AnyValue = {
  stringValue?: string
  intValue?: string | number
  doubleValue?: number
  boolValue?: boolean
  arrayValue?: { values?: AnyValue[] }
  kvlistValue?: { values?: Attribute[] }
}
type Attribute = { key: string; value: AnyValue }
type Attributes = Record<string, unknown>

type Scope = { spans?: RawSpan[]; logRecords?: RawLog[]; metrics?: RawMetric[] }
type RawSpan = {
  name: string
  traceId: string
  spanId: string
  parentSpanId?: string
  attributes?: Attribute[]
}
type RawLog = {
  eventName?: string
  severityText?: string
  traceId?: string
  attributes?: Attribute[]
  body?: AnyValue
}
type Point = {
  asDouble?: number
  count?: string | number
  sum?: number
  bucketCounts?: (string | number)[]
  explicitBounds?: number[]
  attributes?: Attribute[]
}
type RawMetric = {
  name: string
  description?: string
  sum?: { dataPoints: Point[]; isMonotonic?: boolean; aggregationTemporality?: number }
  gauge?: { dataPoints: Point[] }
  histogram?: { dataPoints: Point[]; aggregationTemporality?: number }
}

type Received<Raw> = Omit<Raw, 'attributes'> & { attributes: Attributes; resource: Attributes }

/** An endpoint of OTLP over HTTP that reads JSON, by https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding */
export type OtlpReceiver = RecordingServer & {
  spans(): Received<RawSpan>[]
  logs(): (Omit<Received<RawLog>, 'body'> & { body: unknown })[]
  /** The last export of each metric by each process. */
  metrics(): (RawMetric & { resource: Attributes })[]
  /** All that was sent, headers and bodies. */
  bytes(): string
}

export async function startOtlpReceiver(t: Test): Promise<OtlpReceiver> {
  const server = await startRecordingServer(t, (_, answer) => {
    answer.head(200, { 'content-type': 'application/json' })
    void answer.write('{}')
    answer.end()
  })
  const bodies = (path: string): string[] =>
    server.requests.filter(({ url }) => url.endsWith(path)).map(bodyOf)
  const read = <Raw>(path: string, list: string, select: (scope: Scope) => Raw[] | undefined) =>
    bodies(path)
      .flatMap(body => (JSON.parse(body) as Record<string, ResourceScopes[]>)[list] ?? [])
      .flatMap(({ resource, ...scopes }) =>
        (Object.values(scopes).find(Array.isArray) as Scope[])
          .flatMap(scope => select(scope) ?? [])
          .map(raw => ({ ...raw, resource: attributesOf(resource?.attributes) })),
      )
  return {
    ...server,
    spans: () => read('/v1/traces', 'resourceSpans', ({ spans }) => spans).map(named),
    logs: () =>
      read('/v1/logs', 'resourceLogs', ({ logRecords }) => logRecords)
        .map(named)
        .map(log => ({ ...log, body: plain(log.body ?? {}) })),
    metrics: () => read('/v1/metrics', 'resourceMetrics', ({ metrics }) => metrics),
    bytes: () =>
      server.requests.map(one => `${JSON.stringify(one.headers)} ${bodyOf(one)}`).join('\n'),
  }
}

type ResourceScopes = { resource?: { attributes?: Attribute[] } } & Record<string, unknown>

const bodyOf = ({ headers, body }: RecordingServer['requests'][number]): string =>
  (headers.some(([name, value]) => name.toLowerCase() === 'content-encoding' && value === 'gzip')
    ? gunzipSync(body)
    : body
  ).toString('utf8')

const named = <Raw extends { attributes?: Attribute[]; resource: Attributes }>(raw: Raw) => ({
  ...raw,
  attributes: attributesOf(raw.attributes),
})

const attributesOf = (attributes: readonly Attribute[] = []): Attributes =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, plain(value)]))

function plain(value: AnyValue): unknown {
  if (value.intValue !== undefined) return Number(value.intValue)
  if (value.arrayValue) return (value.arrayValue.values ?? []).map(plain)
  if (value.kvlistValue) return attributesOf(value.kvlistValue.values)
  return value.stringValue ?? value.doubleValue ?? value.boolValue ?? null
}
