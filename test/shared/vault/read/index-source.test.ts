import t from 'tap'
import { toBinaryVector } from '#shared/storage/mongo/documents.ts'
import { createIndexSource } from '#shared/vault/read/search/index-source.ts'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { startEmbeddingProvider } from '#test/support/doubles/embedding-provider.ts'
import { insertMemories, resolveCaller } from '#test/support/start/insert-memories.ts'
import { exportLines, importFile } from '#test/support/start/memory-file.ts'
import { startService } from '#test/support/start/start-service.ts'

const provider = await startEmbeddingProvider(t)
const env = { OLLAMA_BASE_URL: provider.baseUrl }
const { backend, base } = await startService(t, { env })
const source = createIndexSource(backend)
const model = 'ollama/one'

const newVault = async () => {
  const key = await buildKey(backend)
  return { key, client: createTestClient(base, key) }
}

t.test('a memory that was replaced in another space is no longer found in the first', async t => {
  const { key, client } = await newVault()
  const former = 'The heron nests on the chimney.'
  await insertMemories(backend, key, [{ text: former }])
  const search = async (embeddings?: string): Promise<string[]> => {
    const body = { query: 'Where does the heron nest?', limit: 5, embeddings }
    const answer = await client.post('/v1/memory/search', body)
    return answer.body.memories.map(({ content }: { content: string }) => content)
  }
  t.same(await search(), [former])

  const [heron] = await exportLines(client)
  const changed = { ...heron!, content: 'The heron nests on the lighthouse.' }
  const query = `?on_conflict=replace&embeddings=${model}`
  t.match((await importFile(client, [changed], query)).body, { replaced: 1 })
  t.same(await search(), [])
  t.same(await search(model), [changed.content])
})

t.test('a memory that is changed is put, not removed before', async t => {
  const { key, client } = await newVault()
  const ids = await insertMemories(backend, key, [
    { text: 'The heron nests.' },
    { text: 'The fox sleeps.' },
  ])
  const before = (await resolveCaller(backend, key)).scope.revision
  const edit = { memory_id: ids[0], text: 'The heron flies.' }
  t.equal((await client.post('/v1/memory/edit', edit)).status, 200)
  t.equal((await client.post('/v1/memory/delete-ids', { ids: [ids[1]] })).status, 200)
  await client.post('/v1/memory/reembed', { embeddings: model, drop_previous: true })

  const { scope } = await resolveCaller(backend, key)
  const changesIn = async (embeddings: string | undefined) => {
    const { space, dimension } = await backend.embedders.get(embeddings)
    const changes = await source.changes({ scope, session: null, space, dimension }, before)
    return {
      put: changes!.put.map(({ text }) => text),
      remove: [...new Set(changes!.remove)].toSorted(),
    }
  }
  t.same(await changesIn(model), { put: ['The heron flies.'], remove: [ids[1]] })
  t.same(await changesIn('local'), { put: [], remove: ids.toSorted() })
})

t.test('a vector of another length, with NaN or an infinity, is not in the index', async t => {
  const { space, dimension } = await backend.embedders.get()
  const ruined = (value: number) => new Float32Array(dimension).fill(0.1, 0, 90).fill(value, 3, 4)
  const vectors = {
    length: new Float32Array(5),
    nan: ruined(Number.NaN),
    infinity: ruined(Number.POSITIVE_INFINITY),
    'minus infinity': ruined(Number.NEGATIVE_INFINITY),
  }
  const heron = 'The heron nests on the chimney.'
  for (const [what, vector] of Object.entries(vectors)) {
    const { key, client } = await newVault()
    const ids = await insertMemories(backend, key, [{ text: heron }, { text: 'The heron flies.' }])
    const { scope } = await resolveCaller(backend, key)
    await backend.mongo.memories.updateOne(
      { vault: scope.vault, _id: ids[1]! },
      { $set: { [`vectors.${space}`]: toBinaryVector(vector) } },
    )
    const { status, body } = await client.post('/v1/memory/search', { query: 'heron', limit: 5 })
    t.equal(status, 200, what)
    t.match(body, { totalMemories: 1, memories: [{ content: heron }] }, what)
    t.match(
      await source.changes({ scope, session: null, space, dimension }, 0),
      { put: [{ text: heron }], remove: [ids[1]] },
      what,
    )
  }
})
