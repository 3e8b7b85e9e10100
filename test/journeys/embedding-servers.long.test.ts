import t from 'tap'
import { registry } from '#shared/core/metrics.ts'
import {
  serverNames,
  startEmbeddingService,
  uploadMixed,
} from '#test/support/start/embedding-service.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { countDeadLetters } from '#test/support/checks/observe-jobs.ts'

const { backend, newClient, providers } = await startEmbeddingService(t)

for (const name of serverNames) {
  t.test(`${name}: ten thousand lines, no dead letter and no failure`, async t => {
    const client = await newClient()
    const startedAt = performance.now()
    const load = { count: 10_000, longEvery: 60, prefer: 'respond-async' }
    const { status, body } = await uploadMixed(client, name, load)
    t.equal(status, 202)
    const path = `/v1/operations/${body.operation_id}`
    const ended = async () => ['done', 'failed'].includes((await client.get(path)).body.state)
    await waitUntil('the upload has ended', ended, 900_000)
    t.match((await client.get(path)).body, {
      state: 'done',
      outcome: { status: 200, body: { stats: { total: 10_000, failed: 0 } } },
    })
    t.equal(await countDeadLetters(backend), 0)
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
    t.comment(`${name}: ${seconds} s, ${providers.get(name)!.calls.length} calls`)
  })
}

t.test('texts in parts are counted, none was refused', async t => {
  const text = await registry.metrics()
  t.match(text, /vault_embedding_split_texts_total [1-9]/)
  t.match(text, /vault_embedding_refused_texts_total 0/)
})
