import t, { type Test } from 'tap'
import { createTestBackend } from '#test/support/start/backend.ts'
import { createKeyedClient } from '#test/support/start/memory-file.ts'
import { liveMarked, mark } from '#test/support/samples/marked-life.ts'
import { startModelProvider } from '#test/support/doubles/model-provider.ts'
import { findCollector, noCollector, startCollector } from '#test/support/start/otel-collector.ts'
import { startOtlpReceiver } from '#test/support/doubles/otlp-receiver.ts'
import { startWeb, startWorker } from '#test/support/start/processes.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

const collector = findCollector()
const skip = collector === undefined && noCollector

/** Both processes send to a real collector, which decodes it and passes it on. */
async function startObserved(t: Test, protocol: string, env: Record<string, string> = {}) {
  const receiver = await startOtlpReceiver(t)
  const { http, grpc } = await startCollector(t, collector!, receiver.origin)
  const models = await startModelProvider(t)
  const backend = await createTestBackend(t)
  const shared = {
    ...models.env,
    OTEL_EXPORTER_OTLP_ENDPOINT: protocol === 'grpc' ? grpc : http,
    ...(protocol && { OTEL_EXPORTER_OTLP_PROTOCOL: protocol }),
    OTEL_METRIC_EXPORT_INTERVAL: '10000',
    ...env,
  }
  const [web, worker] = await Promise.all([
    startWeb(t, backend.config, shared),
    startWorker(t, backend.config, shared),
  ])
  const client = await createKeyedClient(backend, web.base)
  /** What is left goes out at the end of the processes. */
  const stop = async (): Promise<void> => {
    for (const one of [web, worker]) {
      one.kill('SIGTERM')
      t.equal((await one.exited).code, 0)
      t.notMatch(one.output(), /telemetry\.failed/)
    }
  }
  return { receiver, client, stop }
}

for (const protocol of ['', 'http/json', 'grpc']) {
  const name = protocol || 'the protocol that is usual'
  t.test(`a collector gets all three signals by ${name}`, { skip }, async t => {
    const { receiver, client, stop } = await startObserved(t, protocol, {
      OTEL_SERVICE_NAME: 'shop-memory',
      OTEL_EXPORTER_OTLP_COMPRESSION: protocol === 'grpc' ? 'none' : 'gzip',
    })
    const { id } = await liveMarked(t, client)
    const { scope } = await client.caller()
    const told = (): boolean =>
      ['web', 'worker'].every(role =>
        receiver
          .metrics()
          .some(
            ({ name: metric, resource }) =>
              metric === 'vault_queue_jobs' && resource['memory_vault.process'] === role,
          ),
      )
    await waitUntil('gauges of both processes have come', told)
    await stop()
    await waitUntil('the last spans and lines have come', () => {
      const names = new Set(receiver.spans().map(span => span.name))
      const events = new Set(receiver.logs().map(({ eventName }) => eventName))
      return names.has('delete_memory') && names.has('job ingest') && events.has('process.draining')
    })
    t.notMatch(receiver.bytes(), new RegExp(`${mark}|sk-own|mk_[A-Za-z0-9]{32}`, 'i'))
    t.ok(receiver.spans().every(({ resource }) => resource['service.name'] === 'shop-memory'))
    const update = receiver.spans().find(span => span.name === 'update_memory')!
    t.match(update.attributes, {
      'gen_ai.operation.name': 'update_memory',
      'gen_ai.memory.store.id': scope.vault,
      'gen_ai.memory.record.id': id,
    })
    const histogram = receiver.metrics().findLast(one => one.name === 'vault_request_seconds')!
    t.ok(histogram.histogram!.dataPoints.length > 0)
    t.ok(receiver.logs().some(({ traceId }) => traceId === update.traceId))
  })
}

t.test('a sampler and a signal that is left out are followed', { skip }, async t => {
  const { receiver, client, stop } = await startObserved(t, 'http/protobuf', {
    OTEL_TRACES_SAMPLER: 'always_off',
    OTEL_METRICS_EXPORTER: 'none',
  })
  await client.post('/v1/memory/search', { query: 'tea', limit: 1 })
  await stop()
  await waitUntil('lines of the log have come', () =>
    receiver.logs().some(({ eventName }) => eventName === 'request.answered'),
  )
  t.same([receiver.spans(), receiver.metrics()], [[], []])
})
