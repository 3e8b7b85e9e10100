import t, { type Test } from 'tap'
import { createTestBackend } from '#test/support/start/backend.ts'
import { createKeyedClient } from '#test/support/start/memory-file.ts'
import { liveMarked, mark } from '#test/support/samples/marked-life.ts'
import { startModelProvider } from '#test/support/doubles/model-provider.ts'
import { startOtlpReceiver } from '#test/support/doubles/otlp-receiver.ts'
import { startWeb, startWorker } from '#test/support/start/processes.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

/** Quick exports, in the encoding that the receiver reads. */
const quick = {
  OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
  OTEL_METRIC_EXPORT_INTERVAL: '200',
  OTEL_BSP_SCHEDULE_DELAY: '100',
  OTEL_BLRP_SCHEDULE_DELAY: '100',
}

/** A web and a worker process on new databases that send to a receiver. */
async function startObserved(t: Test, env: Record<string, string> = {}) {
  const receiver = await startOtlpReceiver(t)
  const models = await startModelProvider(t)
  const backend = await createTestBackend(t)
  const shared = {
    ...models.env,
    ...quick,
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.origin,
    ...env,
  }
  const [web, worker] = await Promise.all([
    startWeb(t, backend.config, shared),
    startWorker(t, backend.config, shared),
  ])
  return { receiver, web, worker, client: await createKeyedClient(backend, web.base) }
}

t.test(
  'one variable: spans, metrics and logs of both processes, and no word of a user',
  async t => {
    const { receiver, web, worker, client } = await startObserved(t, {
      OTEL_EXPORTER_OTLP_HEADERS: 'x-team=red,x-token=a%20b',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    })
    const { id } = await liveMarked(t, client)
    const { scope } = await client.caller()
    const samplesOf = (name: string) =>
      receiver
        .metrics()
        .filter(metric => metric.name === name && metric.resource['memory_vault.process'] === 'web')
    const searches = () =>
      samplesOf('vault_request_seconds').some(({ histogram }) =>
        histogram?.dataPoints.some(({ attributes }) =>
          JSON.stringify(attributes).includes('/v1/memory/search'),
        ),
      )
    await waitUntil('the searches are in a metric', searches)
    // What is left goes out at the end.
    web.kill('SIGTERM')
    worker.kill('SIGTERM')
    t.equal((await web.exited).code, 0)
    t.equal((await worker.exited).code, 0)

    const bytes = receiver.bytes()
    t.notOk(bytes.includes(mark), 'the mark is in nothing that was sent')
    t.notOk(bytes.toLowerCase().includes(mark.toLowerCase()))
    t.notMatch(bytes, /mk_[A-Za-z0-9]{32}|sofa|sk-own/)

    const memorySpans = (name: string) => receiver.spans().filter(span => span.name === name)
    const store = scope.vault
    t.match(memorySpans('search_memory')[0]!.attributes, {
      'gen_ai.operation.name': 'search_memory',
      'gen_ai.memory.store.id': store,
    })
    t.ok(
      memorySpans('search_memory').some(
        ({ attributes }) => attributes['gen_ai.memory.record.id'] === id,
      ),
    )
    t.equal(memorySpans('create_memory').length, 3, 'two stored exchanges and a model call')
    t.match(memorySpans('update_memory')[0]!.attributes, {
      'gen_ai.memory.store.id': store,
      'gen_ai.memory.record.id': id,
      'gen_ai.memory.record.count': 1,
    })
    const [deletion, clearing] = memorySpans('delete_memory')
    t.match(deletion!.attributes, { 'gen_ai.memory.record.id': id })
    t.match(clearing!.attributes, { 'gen_ai.memory.store.id': store, 'memory.range': 'session' })
    t.equal(clearing!.attributes['gen_ai.memory.record.id'], undefined)
    const request = receiver.spans().find(span => span.name === 'POST /v1/memory/delete-ids')!
    t.equal(deletion!.parentSpanId, request.spanId, 'the operation is within its request')
    t.ok(receiver.spans().some(({ name }) => name === 'job ingest'))

    t.match(request.resource, {
      'service.name': 'memory-vault',
      'memory_vault.process': 'web',
      'deployment.environment.name': 'test',
    })
    for (const { headers } of receiver.requests) {
      const sent = Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value]))
      t.match(sent, { 'x-team': 'red', 'x-token': 'a b' })
    }

    const log = receiver
      .logs()
      .find(
        ({ eventName, attributes }) =>
          eventName === 'request.answered' && attributes.route === '/v1/memory/delete-ids',
      )!
    t.match(log, { severityText: 'INFO', traceId: request.traceId, attributes: { status: 200 } })
    const processes = new Set(
      receiver.logs().map(({ resource }) => resource['memory_vault.process']),
    )
    t.same(processes, new Set(['web', 'worker']))

    const histogram = samplesOf('vault_request_seconds').at(-1)!.histogram!
    t.equal(histogram.aggregationTemporality, 2, 'since the start of the process')
    for (const { bucketCounts = [], explicitBounds = [], count } of histogram.dataPoints) {
      t.equal(bucketCounts.length, explicitBounds.length + 1)
      t.equal(
        bucketCounts.reduce<number>((sum, one) => sum + Number(one), 0),
        Number(count),
      )
    }
    t.ok(
      samplesOf('vault_postgres_connections').at(-1)!.gauge,
      'gauges are measured before an export',
    )
    const counter = samplesOf('vault_recalls_total').at(-1)!
    t.match(counter.sum, { isMonotonic: true })
    t.ok(counter.description)
  },
)

t.test('an endpoint that is away stops nothing, and the log says so once', async t => {
  const receiver = await startOtlpReceiver(t)
  await receiver.goDown()
  const backend = await createTestBackend(t)
  const env = {
    ...quick,
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.origin,
    OTEL_EXPORTER_OTLP_TIMEOUT: '300',
    OTEL_METRICS_EXPORTER: 'none',
  }
  const web = await startWeb(t, backend.config, env)
  const client = await createKeyedClient(backend, web.base)
  t.equal((await client.post('/v1/memory/search', { query: 'tea', limit: 1 })).status, 200)
  const told = () => web.output().match(/telemetry\.failed/g)?.length ?? 0
  await waitUntil('the log tells it', () => told() > 0)
  t.match(web.output(), /"reason":"[^"]*ECONNREFUSED/)
  web.kill('SIGTERM')
  t.equal((await web.exited).code, 0)
  t.equal(told(), 1)
})

t.test(
  'nothing of the SDK is loaded without an endpoint, and what a variable says is refused by name',
  async t => {
    const { execFile } = await import('node:child_process')
    const { promisify } = await import('node:util')
    const program = `
    import { registerHooks } from 'node:module'
    const loaded = new Set()
    registerHooks({ load(url, context, next) {
      const name = /@opentelemetry\\/[\\w-]+/.exec(url)?.[0]
      if (name) loaded.add(name)
      return next(url, context)
    } })
    const { startTelemetry } = await import('#shared/core/telemetry/start.ts')
    const { readConfig } = await import('#shared/core/config.ts')
    await import('#shared/core/trace.ts')
    const needed = { DATABASE_URL: 'postgres://127.0.0.1/a', MONGODB_URI: 'mongodb://127.0.0.1/a',
      MASTER_KEY: '11'.repeat(32), KEY_PEPPER: 'a pepper for tests' }
    const telemetry = await startTelemetry(readConfig({ ...needed, ...JSON.parse(process.argv[1]) }).telemetry, 'web')
    console.log(JSON.stringify({ started: telemetry !== null, loaded: [...loaded] }))
    process.exit()
  `
    const run = async (env: Record<string, string>) =>
      JSON.parse(
        (
          await promisify(execFile)(process.execPath, [
            '--input-type=module',
            '-e',
            program,
            JSON.stringify(env),
          ])
        ).stdout,
      ) as { started: boolean; loaded: string[] }
    const unset = await run({})
    t.same(unset, { started: false, loaded: ['@opentelemetry/api'] })
    t.same(
      await run({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9', OTEL_SDK_DISABLED: 'true' }),
      unset,
    )
    const set = await run({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://127.0.0.1:9/v1/traces' })
    t.ok(set.started && set.loaded.includes('@opentelemetry/sdk-node'))
  },
)
