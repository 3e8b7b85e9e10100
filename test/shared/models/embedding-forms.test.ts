import t from 'tap'
import { readConfig } from '#shared/core/config.ts'
import { createEmbedders } from '#shared/models/embedders.ts'
import { formsOfModel } from '#shared/models/embedding-forms.ts'
import { resolveSpaceEmbedders } from '#shared/models/space-embedders.ts'
import { startEmbeddingProvider } from '#test/support/doubles/embedding-provider.ts'
import { embeddingServers } from '#test/support/doubles/embedding-servers.ts'

const embeddersAt = (baseUrl: string, env: Record<string, string> = {}) =>
  createEmbedders(
    readConfig({
      DATABASE_URL: 'postgres://db/vault',
      MONGODB_URI: 'mongodb://mongo/vault',
      MASTER_KEY: 'ab'.repeat(32),
      KEY_PEPPER: 'sixteen characters',
      OLLAMA_BASE_URL: baseUrl,
      ...env,
    }),
  )

const provider = await startEmbeddingProvider(t)
const { bodies } = provider

t.test('queries and passages go out in the forms of their model', async t => {
  const forms: [string, unknown, unknown][] = [
    ['nomic-embed-text:v1.5', 'search_query: a', 'search_document: a'],
    ['intfloat/multilingual-e5-large', 'query: a', 'passage: a'],
    ['bge-large', 'Represent this sentence for searching relevant passages: a', 'a'],
    ['bge-m3', 'a', 'a'],
    ['voyage-3.5', { input_type: 'query' }, { input_type: 'document' }],
    ['embed-v4.0', { input_type: 'search_query' }, { input_type: 'search_document' }],
    ['jina-embeddings-v3', { task: 'retrieval.query' }, { task: 'retrieval.passage' }],
    ['another', 'a', 'a'],
  ]
  for (const [name, query, passage] of forms) {
    const embedder = await embeddersAt(provider.baseUrl).get(`ollama/${name}`)
    await embedder.embedQuery('a')
    await embedder.embedTexts(['a'])
    const sent = [query, passage].map(one => (typeof one === 'string' ? { input: [one] } : one))
    t.match(bodies.splice(0).slice(-2), sent, name)
    t.equal(/_p[0-9a-f]{8}$/.test(embedder.space), query !== 'a', name)
  }
})

t.test('a model of each family is told by the names that servers give it', async t => {
  const query = (name: string) => formsOfModel(name).query.prefix?.slice(0, 14)
  for (const [name, prefix] of [
    ['text-embedding-nomic-embed-text-v1.5', 'search_query: '],
    ['mxbai-embed-large:latest', 'Represent this'],
    ['snowflake-arctic-embed:335m', 'Represent this'],
    ['snowflake-arctic-embed2', 'query: '],
    ['Snowflake/snowflake-arctic-embed-l-v2.0', 'query: '],
    ['intfloat/multilingual-e5-large-instruct', 'Instruct: Give'],
    ['Qwen/Qwen3-Embedding-0.6B', 'Instruct: Give'],
    ['qwen3-embedding:0.6b', 'Instruct: Give'],
    ['embeddinggemma:300m', 'task: search r'],
    ['gemini-embedding-2', 'task: search r'],
    ['gemini-embedding-001', undefined],
    ['BAAI/bge-small-zh-v1.5', '为这个句子生成表示以用于检索'],
    ['text-embedding-3-small', undefined],
    ['all-minilm', undefined],
  ] as const)
    t.equal(query(name), prefix, name)
})

t.test(
  'prefixes that are set win, for the model of EMBEDDINGS alone, and make a space',
  async t => {
    const EMBEDDINGS = 'ollama/nomic-embed-text'
    const spaceOf = async (env: Record<string, string>, model = EMBEDDINGS) =>
      (await embeddersAt(provider.baseUrl, { EMBEDDINGS, ...env }).get(model)).space
    const own = await spaceOf({})
    const off = { EMBEDDINGS_QUERY_PREFIX: '', EMBEDDINGS_PASSAGE_PREFIX: '' }
    t.equal(await spaceOf(off), 'ollama__nomic-embed-text-64', 'as a space was named before')
    const set = await spaceOf({ EMBEDDINGS_QUERY_PREFIX: 'ask: ' })
    t.equal(new Set([own, set, await spaceOf({ EMBEDDINGS_PASSAGE_PREFIX: '' })]).size, 3)
    t.equal(await spaceOf({ EMBEDDINGS_QUERY_PREFIX: 'ask: ' }, 'ollama/other'), 'ollama__other-64')

    const found = await resolveSpaceEmbedders(embeddersAt(provider.baseUrl), [own, set])
    t.same(
      found.embedders.map(({ space }) => space),
      [own],
    )
    t.match(found.unavailable, [{ space: set, reason: /nomic-embed-text embeds into/ }])
  },
)

t.test('a server that knows no such field is asked without it, and without base64', async t => {
  const strict = await startEmbeddingProvider(t, 64, embeddingServers.google)
  strict.refuseField('input_type')
  const embedder = await embeddersAt(strict.baseUrl).get('ollama/voyage-3')
  t.equal(embedder.space, 'ollama__voyage-3-64')
  t.equal((await embedder.embedTexts(['a', 'b'])).length, 2)
})

t.test('EMBEDDINGS_DIMENSIONS is sent, and held against what comes', async t => {
  const open = (model: string, dimensions: string) =>
    embeddersAt(provider.baseUrl, {
      EMBEDDINGS: model,
      EMBEDDINGS_DIMENSIONS: dimensions,
    }).get()
  t.equal((await open('ollama/short', '64')).dimension, 64)
  t.match(bodies.at(-1), { dimensions: 64 })
  await open('ollama/voyage-4', '64')
  t.match(bodies.at(-1), { output_dimension: 64 })
  const message = /vectors of 64 numbers, not of 32/
  await t.rejects(open('ollama/short', '32'), { reason: 'upstream', message })
})

t.test('Google is asked at the path of its compatible API', async t => {
  const google = await startEmbeddingProvider(t, 64, embeddingServers.google)
  const { origin } = new URL(google.baseUrl)
  const embedders = embeddersAt(provider.baseUrl, { GOOGLE_BASE_URL: origin, GOOGLE_API_KEY: 'k' })
  await embedders.get('google/gemini-embedding-001')
  t.equal(google.paths.at(-1), '/v1beta/openai/embeddings')
})
