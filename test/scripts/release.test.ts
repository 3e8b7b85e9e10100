import t from 'tap'
import { createTestClient, startJobWorkers } from '#test/support/start/api.ts'
import { startEmbeddingProvider } from '#test/support/doubles/embedding-provider.ts'
import { insertMemories } from '#test/support/start/insert-memories.ts'
import { serverError } from '#test/support/doubles/mongo-double.ts'
import { openSearchDeployment } from '#test/support/start/search-deployment.ts'

const provider = await startEmbeddingProvider(t)
const model = 'ollama/one'
const index = 'vectors_ollama__one-64'
const { backend, key, api, double, search, release } = await openSearchDeployment(t, {
  OLLAMA_BASE_URL: provider.baseUrl,
  VECTOR_INDEX_QUANTIZATION: 'scalar',
  VECTOR_INDEX_METHOD: 'flat',
})
await startJobWorkers(backend, 'reembed')
const names = () => search.createdIndexes.map(({ name }) => name)

t.test('reembed asks for the search index of its model, as the release does', async t => {
  t.same(names(), ['vectors_local_v1'])
  await insertMemories(backend, key, [{ text: 'The fox sleeps.' }])
  t.equal((await api.post('/v1/memory/reembed', { embeddings: model })).status, 200)
  t.same(names(), ['vectors_local_v1', index])
  t.match(search.createdIndexes, [
    { definition: { fields: [{ quantization: 'scalar', indexingMethod: 'flat' }] } },
    { definition: { fields: [{ quantization: 'scalar', indexingMethod: 'flat' }] } },
  ])
})

t.test('a release asks for those of every model in use', async t => {
  search.dropIndexes()
  const logged = await release()
  t.same(names(), ['vectors_local_v1', index])
  t.match(logged, [
    { level: 'info', event: 'search-index.checked', entry: { outcome: 'created' } },
    { level: 'info', event: 'search-index.checked', entry: { outcome: 'created' } },
  ])
})

t.test('a missing right stops neither a release nor a reembed, and is logged', async t => {
  const { rule } = double
  search.dropIndexes()
  for (const name of ['createSearchIndexes', 'aggregate']) {
    double.rule = (command, body) =>
      command === name &&
      /listSearchIndexes|createSearchIndexes/.test(
        Object.keys(body).join() + JSON.stringify(body['pipeline'] ?? ''),
      )
        ? serverError(13, 'Unauthorized')
        : rule(command, body)
    const logged = await release()
    t.equal(logged.length, 2)
    t.ok(
      logged.every(({ level }) => level === 'warn'),
      JSON.stringify(logged),
    )
  }
  const answer = await createTestClient(api.base, key).post('/v1/memory/reembed', {
    embeddings: 'local',
  })
  t.equal(answer.status, 200)
  double.rule = rule
})

t.test('a deployment without search is concluded from its codes alone', async t => {
  const { rule } = double
  for (const [code, expected] of [
    [59, false],
    [115, false],
    [31_082, false],
    [13, true],
    [8, true],
  ] as const) {
    double.rule = (name, command) =>
      name === 'aggregate' ? serverError(code, 'No') : rule(name, command)
    t.equal(await backend.mongo.hasVectorSearch(), expected, String(code))
  }
  double.rule = name =>
    name === 'aggregate' ? serverError(10107, 'NotWritablePrimary') : undefined
  await t.rejects(backend.mongo.hasVectorSearch(), { name: 'Refusal', reason: 'unavailable' })
  double.rule = rule
})
