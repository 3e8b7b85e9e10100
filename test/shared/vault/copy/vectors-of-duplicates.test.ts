import t from 'tap'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { startEmbeddingProvider } from '#test/support/doubles/embedding-provider.ts'
import { readDocuments } from '#test/support/start/insert-memories.ts'
import { startService } from '#test/support/start/start-service.ts'

const provider = await startEmbeddingProvider(t)
const { backend, base } = await startService(t, { env: { OLLAMA_BASE_URL: provider.baseUrl } })
const model = 'ollama/double'

t.test('a text the destination has in another space only can be found in this one too', async t => {
  const [source, destination] = [await buildKey(backend), await buildKey(backend)]
  const to = createTestClient(base, destination)
  const tell = (key: string, content: string, embeddings?: string) =>
    createTestClient(base, key).post('/v1/memory/ingest?wait=true', {
      messages: [{ role: 'user', content }],
      ...(embeddings && { embeddings }),
    })
  const found = async (embeddings?: string): Promise<string[]> =>
    (
      await to.post(
        '/v1/memory/search',
        { query: 'the violin', limit: 10 },
        embeddings ? { 'x-embedding-model': embeddings } : {},
      )
    ).body.memories.map((row: { content: string }) => row.content)
  await tell(source, 'the violin is in the attic', model)
  await tell(source, 'the violin needs strings', model)
  await tell(destination, 'the violin is in the attic')
  t.same(await found(model), [], 'held as it is')

  const asked = { destination_key: destination, embeddings: model }
  const copy = () => createTestClient(base, source).post('/v1/memory/transfer', asked)
  t.match((await copy()).body, { copied: 1, deduped_or_skipped: 1, failed: 0 })
  t.same((await found(model)).toSorted(), [
    'the violin is in the attic',
    'the violin needs strings',
  ])
  t.same(await found(), ['the violin is in the attic'])
  const before = await readDocuments(backend, destination)
  t.equal(before.length, 2)
  const { body } = await to.post('/v1/memory/search', { query: 'violin', limit: 1 })
  t.equal(body.reflection.unconsolidated.raw.units, 2, 'a vector is no further memory')

  t.match((await copy()).body, { copied: 0, deduped_or_skipped: 2 })
  t.same(await readDocuments(backend, destination), before, 'again, nothing is changed')
})
