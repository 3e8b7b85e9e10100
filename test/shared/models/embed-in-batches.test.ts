import t from 'tap'
import { readConfig } from '#shared/core/config.ts'
import { registry } from '#shared/core/metrics.ts'
import { createEmbedders } from '#shared/models/embedders.ts'
import { startEmbeddingProvider } from '#test/support/doubles/embedding-provider.ts'
import {
  embeddingServers,
  type EmbeddingServerName,
} from '#test/support/doubles/embedding-servers.ts'

const openAt = (baseUrl: string) =>
  createEmbedders(
    readConfig({
      DATABASE_URL: 'postgres://db/vault',
      MONGODB_URI: 'mongodb://mongo/vault',
      MASTER_KEY: 'ab'.repeat(32),
      KEY_PEPPER: 'sixteen characters',
      OLLAMA_BASE_URL: baseUrl,
      OLLAMA_API_KEY: 'sk-ollama-0123456789',
    }),
  ).get('ollama/model')

const lines = Array.from({ length: 200 }, (_, n) => `line ${n} of a file about kettle ${n % 7}`)
const long = (sentence: string): string => sentence.repeat(400).slice(0, 9_000)
const mixed = [
  ...lines,
  long('The harbour is calm in the evening. '),
  long('她昨天在图书馆读完了那本关于海洋的书。'),
  long('เมื่อวานนี้เธออ่านหนังสือเกี่ยวกับทะเล '),
  long('🧜‍♀️🌊📚'),
  long('deadbeef01234567'),
  ' ',
  '',
  '.',
  '{"a":[1,2,{"b":null}]}',
  'one \ud800 half',
]

t.test('every server: all texts get vectors, and the next call is right at once', async t => {
  for (const name of Object.keys(embeddingServers) as EmbeddingServerName[]) {
    const provider = await startEmbeddingProvider(t, 64, embeddingServers[name])
    const embedder = await openAt(provider.baseUrl)
    await embedder.embedTexts(lines)
    provider.calls.length = 0
    await embedder.embedTexts(lines)
    const { inputsMax = 256 } = embeddingServers[name] as { inputsMax?: number }
    const { calls } = provider
    t.ok(calls.every(inputs => inputs <= inputsMax) && calls.length <= 400 / inputsMax + 1, name)

    const vectors = await embedder.embedTexts(mixed)
    t.equal(vectors.length, mixed.length, name)
    t.same(vectors[41], await embedder.embedQuery(lines[41]!), `${name}: in order`)
    const isUnit = (vector: Float32Array) => Math.abs(Math.hypot(...vector) - 1) < 1e-5
    t.ok(vectors.slice(0, 201).every(isUnit), `${name}: of unit length`)
    calls.length = 0
    await embedder.embedTexts(mixed)
    t.ok(calls.length < 400 / inputsMax + 40, `${name}: ${calls.join()}`)
  }
})

t.test('a text too long alone counts in all of its parts, and is counted', async t => {
  const provider = await startEmbeddingProvider(t, 64, embeddingServers.ollama)
  const { embedTexts } = await openAt(provider.baseUrl)
  const metric = async () =>
    (await registry.getSingleMetric('vault_embedding_split_texts_total')!.get()).values[0]!.value
  const before = await metric()
  const text = `${'the sea is calm. '.repeat(200)} zebra`
  const [vector, other, short] = await embedTexts([text, text.replace(' zebra', ''), 'the sea'])
  t.notSame(vector, other)
  t.same(short, (await embedTexts(['the sea']))[0])
  t.equal((await metric()) - before, 2)
})

t.test('a refused text takes no other along; one in a long text leaves the rest', async t => {
  const provider = await startEmbeddingProvider(t)
  const { embedEach, embedTexts } = await openAt(provider.baseUrl)
  provider.refuseText('forbidden')
  const texts = lines.map((line, n) => (n % 70 === 3 ? `${line} forbidden` : line))
  const outcomes = await embedEach([...texts, `${long('calm sea. ')} forbidden word`])
  for (const [n, outcome] of outcomes.entries()) {
    if (n < 200 && n % 70 === 3) {
      t.match(outcome, {
        message: 'The embedding model ollama/model refused (status 400): this text is not allowed',
      })
    } else t.ok(outcome instanceof Float32Array, String(n))
  }
  provider.calls.length = 0
  await embedTexts(lines)
  t.same(provider.calls, [200], 'what it refused says nothing about how much it takes')
  await t.rejects(embedTexts(['a', 'forbidden']), { reason: 'upstream', message: /not allowed/ })
})

t.test('a text that a server breaks at takes no other along either', async t => {
  const provider = await startEmbeddingProvider(t)
  const { embedEach } = await openAt(provider.baseUrl)
  provider.refuseText('poison', 'broken')
  const [first, poison, last] = await embedEach(['a', 'poison', 'b'])
  t.ok(first instanceof Float32Array && last instanceof Float32Array)
  t.match(poison, { message: /did not answer: (?:UND_ERR_SOCKET|ECONNRESET)/ })
})

t.test('a provider that refuses everything is not asked for every text', async t => {
  const provider = await startEmbeddingProvider(t)
  const { embedEach } = await openAt(provider.baseUrl)
  for (const status of [400, 401, 404, 500]) {
    provider.calls.length = 0
    provider.fail(status, 1_000)
    const message = `The embedding model ollama/model refused (status ${status}): scripted failure`
    await t.rejects(embedEach(lines), { reason: 'upstream', message }, String(status))
    t.ok(provider.calls.length < 13, `${status}: ${provider.calls.join()}`)
  }
})

t.test('a batch that a slow machine does not answer in time is cut', async t => {
  const provider = await startEmbeddingProvider(t)
  const { embedQueries } = await openAt(provider.baseUrl)
  provider.hang(2)
  t.equal((await embedQueries(lines.slice(0, 8))).length, 8)
  t.same(provider.calls.slice(1), [8, 2, 2, 2, 2])
})

t.test('the provider’s words: in one line, without the inputs and the key', async t => {
  const provider = await startEmbeddingProvider(t, 64, embeddingServers.infinity)
  const { embedTexts } = await openAt(provider.baseUrl)
  const words: [unknown, string][] = [
    [{ message: 'batch size 100 > maximum\n allowed' }, ': batch size 100 > maximum allowed'],
    [[{ error: { code: 401, message: 'API key not valid' } }], ': API key not valid'],
    [{ detail: [{ msg: 'too long: my private sentence of old', input: 'x' }] }, ': too long: …'],
    [{ error: "bad input 'kettle'" }, ": bad input '…'"],
    [
      { error: { message: 'Incorrect key sk-ollama-0123456789 provided' } },
      ': Incorrect key … provided',
    ],
    [{ error: { message: 'Incorrect key: sk-ol***6789.' } }, ': Incorrect key: …'],
    [{ error: 'x'.repeat(500) }, `: ${'x'.repeat(200)}`],
    ['<html>nginx</html>', ''],
    ['overloaded', ': overloaded'],
    [{ unknown: 1 }, ''],
  ]
  for (const [body, said] of words) {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    provider.answerAlways('text/plain', text, 401)
    const message = `The embedding model ollama/model refused (status 401)${said}`
    await t.rejects(embedTexts(['my private sentence of old', 'kettle']), { message })
  }
})
