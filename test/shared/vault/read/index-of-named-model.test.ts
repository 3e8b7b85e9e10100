import t from 'tap'
import { startEmbeddingProvider } from '#test/support/doubles/embedding-provider.ts'
import { insertMemories } from '#test/support/start/insert-memories.ts'
import { openSearchDeployment } from '#test/support/start/search-deployment.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

t.test('a model that only requests name gets its search index at its first search', async t => {
  const provider = await startEmbeddingProvider(t)
  const { backend, key, api, search } = await openSearchDeployment(t, {
    OLLAMA_BASE_URL: provider.baseUrl,
  })
  const space = 'ollama__double-64'
  const rows = Array.from({ length: 1_500 }, (_, n) => ({ text: `Report ${n} of shelf ${n % 97}` }))
  await insertMemories(backend, key, rows, { embeddings: 'ollama/double' })
  const indexes = () => search.createdIndexes.filter(({ name }) => name === `vectors_${space}`)
  t.equal(indexes().length, 0, 'the release knows nothing of it')
  const ask = () =>
    api.post(
      '/v1/memory/search',
      { query: 'Report 7', limit: 3 },
      { 'x-embedding-model': 'ollama/double' },
    )

  const [first, second] = await Promise.all([ask(), ask()])
  t.equal(first.body.memories.length, 3, 'from memory, once it is loaded')
  t.equal(second.body.memories.length, 3)
  await waitUntil('it is asked for', () => indexes().length === 1)
  t.match(indexes()[0], { definition: { fields: [{ path: `vectors.${space}` }] } })
})
