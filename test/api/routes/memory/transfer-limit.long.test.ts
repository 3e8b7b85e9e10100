import t from 'tap'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { readDocuments, insertMemories } from '#test/support/start/insert-memories.ts'
import { startService } from '#test/support/start/start-service.ts'

const { backend, base } = await startService(t)
const transfer = (source: string, destination_key: string, body: object = {}) =>
  createTestClient(base, source).post('/v1/memory/transfer', { destination_key, ...body })

t.test('413: 10,001 core memories are refused, 10,000 are copied', async t => {
  const [source, destination] = [await buildKey(backend), await buildKey(backend)]
  const row = (n: number) => ({ text: `memory number ${n}`, tokens: 3 })
  await insertMemories(
    backend,
    source,
    Array.from({ length: 10_000 }, (_, n) => row(n)),
  )
  await insertMemories(backend, source, [row(0)], { session: 'apart' })
  const whole = await transfer(source, destination)
  t.match(whole, { status: 200, body: { copied: 10_000, failed: 0, estimated_tokens: 30_000 } })

  await insertMemories(backend, source, [row(10_000)])
  const other = await buildKey(backend)
  for (const dry_run of [false, true]) {
    t.match(await transfer(source, other, { dry_run }), {
      status: 413,
      body: { error: /10000/, hint: /graft/ },
    })
  }
  t.same(await readDocuments(backend, other), [])
})
