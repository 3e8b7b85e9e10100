import { propagation, trace, context } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  TracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
} from '@opentelemetry/sdk-trace'
import t from 'tap'
import { buildKey, startTestApi, startJobWorkers } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { startEmbeddingProvider } from '#test/support/doubles/embedding-provider.ts'
import { startModelProvider } from '#test/support/doubles/model-provider.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

const exporter = new InMemorySpanExporter()
t.teardown(() => [trace, context, propagation].forEach(api => api.disable()))
trace.setGlobalTracerProvider(
  new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }),
)
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
propagation.setGlobalPropagator({
  fields: () => ['traceparent'],
  inject: () => {},
  extract(parent, carrier: Record<string, string>) {
    const [, traceId, spanId] = carrier.traceparent?.split('-') ?? []
    if (traceId === undefined || spanId === undefined) return parent
    return trace.setSpanContext(parent, { traceId, spanId, traceFlags: 1, isRemote: true })
  },
})

const provider = await startEmbeddingProvider(t)
const models = await startModelProvider(t)
const backend = await createTestBackend(t, {
  env: { ...models.env, OLLAMA_BASE_URL: provider.baseUrl, EMBEDDINGS: 'ollama/small' },
})
await startJobWorkers(backend, 'ingest')
const api = await startTestApi(t, backend, await buildKey(backend))
const secret = 'The cat is called Ada'

/** A span may end after the answer that it is about has come. */
async function finishedSpan(name: string): Promise<ReadableSpan> {
  const find = () => exporter.getFinishedSpans().find(span => span.name === name)
  await waitUntil(`${name} has ended`, () => find() !== undefined)
  return find()!
}

t.test('a request goes on with the trace of its client, down to the provider', async t => {
  const traceId = '0af7651916cd43dd8448eb211c80319c'
  const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-01` }
  exporter.reset()
  await api.post('/v1/memory/search', { query: secret, limit: 1 }, headers)
  const request = await finishedSpan('POST /v1/memory/search')
  const spans = exporter.getFinishedSpans().filter(span => span.spanContext().traceId === traceId)
  t.ok(spans.includes(request))
  t.match(request.attributes, {
    'http.request.method': 'POST',
    'http.route': '/v1/memory/search',
    'http.response.status_code': 200,
  })
  t.ok(
    spans.some(
      ({ name, attributes }) => name === 'provider' && attributes['server.name'] === 'ollama',
    ),
  )
})

t.test('a model call says what memory did, in words and numbers', async t => {
  exporter.reset()
  const content = `<system-reminder>The plan is empty.</system-reminder>\n${secret}`
  const body = { model: 'openai/gpt-4o-mini', messages: [{ role: 'user', content }] }
  const { status } = await api.post('/v1/chat/completions', body, { 'x-provider-key': 'sk-own' })
  t.equal(status, 200)
  const request = await finishedSpan('POST /v1/chat/completions')
  t.match(request.attributes, { 'memory.status': 'none', 'memory.left_out': 'reminder=1' })
  t.notMatch(JSON.stringify(request.attributes), /Ada|plan/)
})

t.test('a batch of jobs is a span; what users say is in none', async t => {
  exporter.reset()
  await api.post('/v1/memory/ingest?wait=true', { messages: [{ role: 'user', content: secret }] })
  await waitUntil('the job has ended', async () =>
    exporter.getFinishedSpans().some(({ name }) => name === 'job ingest'),
  )
  const told = exporter.getFinishedSpans().map(({ name, attributes, events, status }) => ({
    name,
    attributes,
    events,
    status,
  }))
  t.notMatch(JSON.stringify(told), /Ada|mk_/)
})
