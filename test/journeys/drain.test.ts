import { request } from 'node:http'
import t from 'tap'
import { buildKey, createTestClient } from '#test/support/api.ts'
import { createTestBackend, createTestConfig } from '#test/support/backend.ts'
import { startWeb, startWorker } from '#test/support/processes.ts'
import { waitUntil } from '#test/support/wait-until.ts'

const config = await createTestConfig(t)
const backend = await createTestBackend(t, { config })
const key = await buildKey(backend)

/** One request on a connection of its own: its status, or why there was no answer. */
const send = (base: string, word: string): Promise<number | string> =>
  new Promise(resolve => {
    const body = JSON.stringify({ messages: [{ role: 'user', content: word }] })
    const sent = request(
      `${base}/v1/memory/ingest`,
      {
        method: 'POST',
        agent: false,
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
        },
      },
      response => {
        response.resume().once('end', () => resolve(response.statusCode!))
      },
    )
    sent.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    sent.end(body)
  })

t.test('SIGTERM under load: what was let in is answered, what is answered is stored', async t => {
  const web = await startWeb(t, config)
  const worker = await startWorker(t, config)
  const answers = new Map<string, number | string>()
  const enough = new AbortController()
  let asked = 0
  const clients = Array.from({ length: 8 }, async () => {
    while (!enough.signal.aborted) {
      const word = `drain${asked++}`
      answers.set(word, await send(web.base, word))
    }
  })
  await waitUntil('the load has begun', async () => answers.size > 200)
  web.kill('SIGTERM')
  const { size } = answers
  // As a load balancer does.
  await waitUntil('it says that it is stopping', async () => {
    const { status, body } = await createTestClient(web.base).get('/health/ready')
    return status === 503 && body.error.includes('about to stop')
  })
  enough.abort()
  await Promise.all(clients)
  t.ok(answers.size > size, 'it went on serving until then')
  t.same(await web.exited, { code: 0, signal: null }, web.output())

  const counts = Object.groupBy([...answers.values()], String)
  t.same(Object.keys(counts), ['202'], 'no request is dropped')

  worker.kill('SIGTERM')
  t.same(await worker.exited, { code: 0, signal: null }, worker.output())
  const accepted = [...answers.values()].filter(answer => answer === 202).length
  const [second, next] = [await startWeb(t, config), await startWorker(t, config)]
  const client = createTestClient(second.base, key)
  await waitUntil('everything accepted is stored, once', async () => {
    const { body } = await client.get('/v1/memory/stats')
    return body.memories >= accepted
  })
  t.equal((await client.get('/v1/memory/stats')).body.memories, accepted)
  t.ok(next.output().includes('worker.taking'))
})
