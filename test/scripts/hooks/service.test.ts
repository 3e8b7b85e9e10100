import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { callService } from '#scripts/hooks/service.ts'

/** A service in a thread of its own, which answers once the thread of the caller stands still. */
const service = `
  const { workerData, parentPort } = require('node:worker_threads')
  const server = require('node:http').createServer((_, response) => {
    parentPort.postMessage('asked')
    Atomics.wait(workerData, 0, 0)
    response.end('{"context": "heron-42"}')
  })
  server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))
`

t.test('an answer that came in time is read, however late this process is', async t => {
  const standsStill = new Int32Array(new SharedArrayBuffer(4))
  const worker = new Worker(service, { eval: true, workerData: standsStill })
  t.teardown(() => worker.terminate())
  const [port] = (await once(worker, 'message')) as [number]
  const connection = { base_url: `http://127.0.0.1:${port}`, key: 'mk_0' }
  const timeoutMs = 3_000
  const asked = callService(connection, { method: 'GET', path: '/', timeoutMs })
  await once(worker, 'message')
  Atomics.store(standsStill, 0, 1)
  Atomics.notify(standsStill, 0)
  const until = performance.now() + timeoutMs + 500
  while (performance.now() < until)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100)
  t.same((await asked).body, { context: 'heron-42' })
})
