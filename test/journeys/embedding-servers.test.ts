import t from 'tap'
import {
  serverNames,
  startEmbeddingService,
  uploadMixed,
} from '#test/support/start/embedding-service.ts'

const { newClient, providers } = await startEmbeddingService(t)

for (const name of serverNames) {
  t.test(`${name}: a mixed file and a long exchange are stored whole, and found`, async t => {
    const client = await newClient()
    providers.get(name)!.limit(1)
    const { status, body } = await uploadMixed(client, name, { count: 140, longEvery: 12 })
    t.match({ ...body, status }, { status: 200, stats: { total: 140, failed: 0 } })

    const embeddings = `${name}/model`
    const content = `The heron nests on the chimney. ${'看海的人写信。'.repeat(400)} The end of it.`
    const exchange = { messages: [{ role: 'user', content }], embeddings }
    t.equal((await client.post('/v1/memory/ingest?wait=true', exchange)).status, 200)
    for (const [query, found] of [
      ['which house has the lantern of house 60?', /lantern of house 60 /],
      ['where does the heron nest?', /heron nests/],
    ] as const) {
      const answer = await client.post('/v1/memory/search', { query, limit: 5, embeddings })
      const texts = answer.body.memories.map((row: { content: string }) => row.content)
      t.equal(answer.status, 200)
      t.match(texts.join('\n'), found)
    }
  })
}
