import t from 'tap'
import { readConfig } from '#shared/config.ts'
import { createEmbedders } from '#shared/embedding/embedders.ts'
import { embeddingProvider } from '#test/support/provider.ts'

const environment = {
  DATABASE_URL: 'postgres://db/vault',
  MONGODB_URI: 'mongodb://mongo/vault',
  MASTER_KEY: 'ab'.repeat(32),
  KEY_PEPPER: 'sixteen characters',
}

const norm = (vector: Float32Array): number => Math.hypot(...vector)

t.test(
  'an OpenAI-compatible provider: batches, order, unit length, one space per dimension',
  async t => {
    const provider = await embeddingProvider(t)
    const embedders = createEmbedders(
      readConfig({
        ...environment,
        OPENAI_BASE_URL: provider.baseUrl,
        OPENAI_API_KEY: 'sk-test',
        EMBEDDINGS: 'openai/text-embedding-3-small',
      }),
    )
    const embedder = await embedders.get()
    t.equal(embedder.dimension, 64, 'learnt from the first answer')
    t.equal(embedder.space, 'openai__text-embedding-3-small-64')
    t.equal(await embedders.get('openai/text-embedding-3-small'), embedder, 'opened once')

    const texts = Array.from({ length: 600 }, (_, index) => `text number ${index}`)
    const vectors = await embedder.embedTexts(texts)
    t.equal(vectors.length, 600)
    t.same(provider.calls, [1, 256, 256, 88])
    t.ok(vectors.every(vector => Math.abs(norm(vector) - 1) < 1e-5))
    t.same(vectors[300], await embedder.embedQuery('text number 300'), 'in the order of the texts')
    t.same(await embedder.embedTexts([]), [])
  },
)

t.test('rate limits and server errors are retried, refusals are not hidden', async t => {
  const provider = await embeddingProvider(t)
  const embedders = createEmbedders(
    readConfig({ ...environment, MISTRAL_BASE_URL: provider.baseUrl, MISTRAL_API_KEY: 'key' }),
  )
  const embedder = await embedders.get('mistral/mistral-embed')
  provider.fail(429, 1)
  t.equal((await embedder.embedTexts(['again'])).length, 1)

  provider.fail(401, 5)
  await t.rejects(embedder.embedTexts(['no']), { reason: 'upstream', message: /status 401/ })
})

t.test('a caller who gives up ends the call', async t => {
  const provider = await embeddingProvider(t)
  const embedders = createEmbedders(
    readConfig({ ...environment, OLLAMA_BASE_URL: provider.baseUrl }),
  )
  const embedder = await embedders.get('ollama/nomic-embed-text')
  provider.hang()
  const begun = Date.now()
  await t.rejects(embedder.embedTexts(['slow'], AbortSignal.timeout(100)), { message: /abort/i })
  t.ok(Date.now() - begun < 5_000)
})

t.test('a provider that was down at the first use is asked again', async t => {
  const provider = await embeddingProvider(t)
  const embedders = createEmbedders(
    readConfig({ ...environment, OLLAMA_BASE_URL: provider.baseUrl }),
  )
  provider.fail(400, 1)
  await t.rejects(embedders.get('ollama/m'), { message: /did not answer/, reason: 'upstream' })
  t.equal((await embedders.get('ollama/m')).dimension, 64)
})

t.test('invalid: unknown providers, odd names, and providers without a key', async t => {
  const embedders = createEmbedders(readConfig(environment))
  for (const model of [
    'gpt',
    'nobody/model',
    'openai/',
    'openai/a b',
    '/x',
    'openai/text-embedding-3-small',
  ]) {
    await t.rejects(embedders.get(model), { message: /embed/, reason: 'invalid' }, model)
  }
})
