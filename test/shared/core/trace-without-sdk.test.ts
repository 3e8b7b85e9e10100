import { trace } from '@opentelemetry/api'
import { TracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace'
import t from 'tap'
import { withRequestSpan, withSpan } from '#shared/core/trace.ts'

/** The context of a span, by the header that a client sends. */
const headers = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }

t.test('without an SDK work runs in no span, and ends as it ends', async t => {
  const isRecording = await withSpan('a', {}, async span => span.isRecording())
  t.equal(isRecording, false)
  t.equal(await withRequestSpan(headers, {}, async span => span.isRecording()), false)
  const failed = withSpan('a', {}, async span => {
    span.updateName('b').setAttributes({ c: 1 }).end()
    throw new RangeError('no')
  })
  await t.rejects(failed, RangeError)
})

t.test('an SDK that is registered after this module was loaded gets all spans', async t => {
  const exporter = new InMemorySpanExporter()
  t.teardown(() => trace.disable())
  trace.setGlobalTracerProvider(
    new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }),
  )
  t.equal(await withSpan('stage', {}, async span => span.isRecording()), true)
  t.equal(await withRequestSpan(headers, {}, async span => span.isRecording()), true)
  const names = exporter.getFinishedSpans().map(({ name }) => name)
  t.same(names, ['stage', 'request'])
})
