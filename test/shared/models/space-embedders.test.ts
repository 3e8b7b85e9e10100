import t from 'tap'
import { readConfig } from '#shared/core/config.ts'
import { createEmbedders } from '#shared/models/embedders.ts'
import { resolveSpaceEmbedders } from '#shared/models/space-embedders.ts'
import { startEmbeddingProvider } from '#test/support/doubles/embedding-provider.ts'

const provider = await startEmbeddingProvider(t)
const embedders = createEmbedders(
  readConfig({
    DATABASE_URL: 'postgres://db/vault',
    MONGODB_URI: 'mongodb://mongo/vault',
    MASTER_KEY: 'ab'.repeat(32),
    KEY_PEPPER: 'sixteen characters',
    OLLAMA_BASE_URL: provider.baseUrl,
    EMBEDDINGS: 'local',
  }),
)

t.test('a space leads back to its model, whatever signs that has', async t => {
  for (const model of ['local', 'ollama/nomic-embed_text:v1.5', 'ollama/library/bge@m3']) {
    const { space } = await embedders.get(model)
    const found = await resolveSpaceEmbedders(embedders, [space])
    const models = found.embedders.map(embedder => embedder.model)
    t.same(models, [model], space)
    t.same(found.unavailable, [])
  }
})

t.test('lost: no such provider here, another dimension, a name of another scheme', async t => {
  const { space } = await embedders.get('ollama/small')
  const gone = ['mistral__embed-8', space.replace(/\d+$/, '9'), 'something_else', 'local_v0']
  const found = await resolveSpaceEmbedders(embedders, [space, ...gone])
  t.same(
    found.embedders.map(embedder => embedder.model),
    ['ollama/small'],
  )
  t.same(
    found.unavailable.map(one => one.space),
    gone,
  )
  t.ok(found.unavailable.every(({ reason }) => reason.length > 10))
  const none = await resolveSpaceEmbedders(embedders, gone)
  t.same(
    none.embedders.map(embedder => embedder.model),
    ['local'],
    'the default, if none is left',
  )
})

t.test('upstream: a space whose model does not answer is not lost', async t => {
  provider.fail(401, 1)
  const refused = await resolveSpaceEmbedders(embedders, ['ollama__never-asked-64']).catch(
    (error: unknown) => error,
  )
  t.match(refused, { reason: 'upstream' })
})
