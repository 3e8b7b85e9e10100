import { setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import t from 'tap'
import { readConfig } from '#shared/core/config.ts'
import { registry } from '#shared/core/metrics.ts'
import { createEmbedders, KeepWarm } from '#shared/models/embedders.ts'
import { callEmbeddings } from '#shared/models/embeddings-call.ts'
import type { ModelRefusal } from '#shared/models/model-refusal.ts'
import { chunkBytesMax, splitText } from '#shared/models/split-text.ts'
import { startEmbeddingProvider } from '#test/support/doubles/embedding-provider.ts'
import { startRecordingServer } from '#test/support/doubles/recording-server.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

const environment = {
  DATABASE_URL: 'postgres://db/vault',
  MONGODB_URI: 'mongodb://mongo/vault',
  MASTER_KEY: 'ab'.repeat(32),
  KEY_PEPPER: 'sixteen characters',
}

const norm = (vector: Float32Array): number => Math.hypot(...vector)

t.test('an OpenAI-compatible provider: batches, order, unit length, its space', async t => {
  const provider = await startEmbeddingProvider(t)
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
})

t.test('Google embeds at its OpenAI-compatible path, below the address of its own API', async t => {
  const server = await startRecordingServer(t, (_, answer) => {
    answer.head(200, { 'content-type': 'application/json' })
    void answer.write(JSON.stringify({ data: [{ index: 0, embedding: [1, 0] }] }))
    answer.end()
  })
  const env = { ...environment, GOOGLE_BASE_URL: server.origin, GOOGLE_API_KEY: 'of-google' }
  const embedder = await createEmbedders(readConfig(env)).get('google/gemini-embedding-001')
  t.equal(embedder.dimension, 2)
  t.equal(server.requests[0]?.url, '/v1beta/openai/embeddings')
})

const embedderAt = (baseUrl: string) =>
  createEmbedders(readConfig({ ...environment, OLLAMA_BASE_URL: baseUrl })).get('ollama/long')

/** As many characters as an edit may have; the double knows words of plain letters alone. */
const filled = (sentence: string): string => `sea ${sentence.repeat(1_500)}`.slice(0, 32_000)

const languages = {
  zh: '她昨天在图书馆读完了那本关于海洋的书，然后写了一封很长的信。',
  ja: '昨日は図書館で海についての本を読み終えて、長い手紙を書きました。',
  th: 'เมื่อวานนี้เธออ่านหนังสือเกี่ยวกับทะเลจบในห้องสมุดแล้วเขียนจดหมายยาว',
  ru: 'Вчера она дочитала в библиотеке книгу о море и написала длинное письмо. ',
  emoji: '🧜‍♀️🌊📚✉️👩‍👩‍👧‍👦',
}

t.test('a long text of any script is embedded, and all of it counts', async t => {
  const provider = await startEmbeddingProvider(t)
  const embedder = await embedderAt(provider.baseUrl)
  for (const [name, sentence] of Object.entries(languages)) {
    const text = filled(sentence)
    const [vector] = await embedder.embedTexts([text])
    t.ok(Math.abs(norm(vector!) - 1) < 1e-5, name)
    const other = `${text.slice(0, -1_000)} ${'zebra '.repeat(150)}`
    t.notSame((await embedder.embedTexts([other]))[0], vector, `${name}: the end of it`)
    t.ok(await embedder.embedQuery(text), `${name}: as a question`)
  }
  const short = 'one of the usual kind'
  const mixed = [short, filled(languages.zh), short]
  const [first, , last] = await embedder.embedTexts(mixed)
  t.same(first, last)
  t.same(first, await embedder.embedQuery(short), 'what is around a text changes nothing')
})

t.test('a commit of a hundred long reflections is no call too large', async t => {
  const provider = await startEmbeddingProvider(t)
  const embedder = await embedderAt(provider.baseUrl)
  const entries = Array.from({ length: 100 }, () => filled(languages.zh).slice(0, 8_000))
  t.equal((await embedder.embedTexts(entries)).length, 100)
})

t.test('parts are the text again, none is too long, none is a scrap', async t => {
  const others = ['ordinary words. ', 'x', '\n', ' ', 'é']
  const script = fc.constantFrom(...Object.values(languages), ...others)
  const texts = fc
    .array(fc.tuple(script, fc.integer({ min: 1, max: 3_000 })), { maxLength: 6 })
    .map(runs =>
      runs
        .map(([unit, times]) => unit.repeat(times))
        .join('')
        .slice(0, 60_000),
    )
  fc.assert(
    fc.property(texts, text => {
      const whole = text.toWellFormed()
      const parts = splitText(whole)
      const sizes = parts.map(part => Buffer.byteLength(part))
      return (
        parts.join('') === whole &&
        parts.every(part => part.isWellFormed()) &&
        sizes.every(size => size <= chunkBytesMax) &&
        (parts.length === 1 || Math.min(...sizes) > chunkBytesMax / 4)
      )
    }),
    { numRuns: 200 },
  )
  t.same(splitText(''), [''])
  const [first] = splitText(`${'Sentences end here. '.repeat(300)}\n${'And go on. '.repeat(300)}`)
  t.match(first, /\.\s$/)
})

t.test('rate limits and server errors are retried, refusals are not hidden', async t => {
  const provider = await startEmbeddingProvider(t)
  const embedders = createEmbedders(
    readConfig({ ...environment, MISTRAL_BASE_URL: provider.baseUrl, MISTRAL_API_KEY: 'key' }),
  )
  const embedder = await embedders.get('mistral/mistral-embed')
  provider.fail(429, 1)
  t.equal((await embedder.embedTexts(['again'])).length, 1)

  provider.fail(401, 5)
  await t.rejects(embedder.embedTexts(['no']), { reason: 'upstream', message: /status 401/ })
})

t.test('upstream: vectors of another length than the first, or without numbers', async t => {
  const provider = await startEmbeddingProvider(t)
  const vectorOf = (length: number, first: unknown = 0.5) => [first, ...Array(length - 1).fill(0.5)]
  const other = (length: number) => new RegExp(`vectors of ${length} numbers now, of 64 before`)
  const wrong: [string, unknown[], RegExp][] = [
    ['shorter', vectorOf(32), other(32)],
    ['longer', vectorOf(65), other(65)],
    ['null', vectorOf(64, null), /did not answer/],
    ['a word', vectorOf(64, '0.5'), /did not answer/],
    ['beyond a float', vectorOf(64, 1e39), /did not answer/],
  ]
  const refused = { message: /did not answer/, reason: 'upstream' }
  for (const [what, embedding, message] of wrong) {
    provider.recover()
    const { embedTexts } = await embedderAt(provider.baseUrl)
    provider.answerAlways('application/json', JSON.stringify({ data: [{ index: 0, embedding }] }))
    await t.rejects(embedTexts(['kettle']), { message, reason: 'upstream' }, what)
  }
  provider.recover()
  const { embedQuery } = await embedderAt(provider.baseUrl)
  provider.answerAlways('application/json', '{}')
  await t.rejects(embedQuery('kettle'), refused, 'a question')
  const fault = '{"error":{"message":"model nomic is not loaded"}}'
  provider.answerAlways('application/json', fault)
  const told = { message: /vectors of its inputs: model nomic is not loaded$/ }
  await t.rejects(embedQuery('kettle'), told, 'an error with status 200')
  provider.recover()
  t.equal((await embedQuery('kettle')).length, 64)
})

t.test('a caller who gives up ends the call', async t => {
  const provider = await startEmbeddingProvider(t)
  const embedders = createEmbedders(
    readConfig({ ...environment, OLLAMA_BASE_URL: provider.baseUrl }),
  )
  const embedder = await embedders.get('ollama/nomic-embed-text')
  provider.hang()
  await t.rejects(embedder.embedTexts(['slow'], AbortSignal.timeout(100)), { message: /abort/i })
})

t.test('a provider that was down at the first use is asked again', async t => {
  const provider = await startEmbeddingProvider(t)
  const embedders = createEmbedders(
    readConfig({ ...environment, OLLAMA_BASE_URL: provider.baseUrl }),
  )
  provider.fail(401, 1)
  const refused = { message: /refused \(status 401\): scripted failure/, reason: 'upstream' }
  await t.rejects(embedders.get('ollama/m'), refused)
  t.equal((await embedders.get('ollama/m')).dimension, 64)
})

t.test('a model that only requests name is probed once it has answered', async t => {
  const provider = await startEmbeddingProvider(t)
  const embedders = createEmbedders(
    readConfig({ ...environment, OLLAMA_BASE_URL: provider.baseUrl, EMBEDDINGS: 'ollama/usual' }),
    new Set(['ollama/in-use']),
  )
  t.teardown(() => embedders.close())
  const hasMetric = async (model: string) => (await registry.metrics()).includes(`"${model}"`)
  provider.fail(404, 3)
  for (const model of ['ollama/invented', 'openai/invented']) {
    for (let n = 0; n < 3; n++) await t.rejects(embedders.get(model), { message: /embedding/ })
    t.equal(embedders.breakerOf(model), undefined, model)
    t.equal(await hasMetric(model), false, model)
  }
  t.equal(provider.calls.length, 3, 'nothing but the requests has asked')
  t.ok(embedders.breakerOf('ollama/usual'))
  t.ok(embedders.breakerOf('ollama/in-use'))

  for (let n = 0; n < 100; n++) await embedders.get(`ollama/invented-${n}`)
  t.equal(embedders.breakerOf('ollama/invented-99')?.state, 'closed', 'it has answered')
  t.equal(embedders.breakerOf('ollama/invented-0'), undefined, 'a gateway answers to any name')
  t.equal(await hasMetric('ollama/invented-99'), false, 'and none of them is a label')
  await t.rejects(
    embedders.get('ollama/invented-99').then(({ embedQuery }) => {
      provider.fail(404, 9)
      return Promise.all([embedQuery('a'), embedQuery('b')])
    }),
  )
  await waitUntil('that is refused', () => hasMetric('ollama/invented-99'))
})

t.test('what a job waits for: a model that is away, and one that is asked too much', async t => {
  const provider = await startEmbeddingProvider(t)
  const key = 'sk-test-0123456789'
  const words = `Incorrect API key provided: sk-t***6789.\n\n ${key} ${'x'.repeat(500)}`
  const changes: unknown[][] = []
  const model = 'openai/usual'
  const embedders = createEmbedders(
    readConfig({
      ...environment,
      OPENAI_BASE_URL: provider.baseUrl,
      OPENAI_API_KEY: key,
      EMBEDDINGS: model,
    }),
    new Set(),
    (...change) => void changes.push(change),
  )
  t.teardown(() => embedders.close())
  const failOnce = async (status: number, times: number) => {
    const { embedTexts } = await embedders.get(model)
    provider.fail(status, times, words)
    const error: ModelRefusal = await embedTexts(['text']).catch(error => error)
    return { error, outage: await embedders.findOutage(error) }
  }
  t.match(await failOnce(400, 1), { error: { status: 400, isPermanent: true }, outage: undefined })
  t.match(await failOnce(429, 4), {
    error: { isPermanent: false },
    outage: { dependency: model, isAway: false },
  })
  t.same(embedders.away(), [])
  // The last probe is not older than a second yet.
  await delay(1_000)
  const { outage } = await failOnce(401, 9)
  const told = `Incorrect API key provided: … … ${'x'.repeat(500)}`.slice(0, 200)
  const reason = `refused (status 401): ${told}`
  t.same(outage, { dependency: model, isAway: true, reason })
  t.same(changes, [[model, 'refused', reason]])
  t.same(embedders.away(), [model])
  const refused = embedders.get(model).then(({ embedQuery }) => embedQuery('Where?'))
  await t.rejects(refused, { message: /usual refused \(status 401\): Incorrect/ })
  t.match(await registry.metrics(), `vault_dependency_state{dependency="${model}"} 3`)

  const removed: ModelRefusal = await embedders.get('mistral/gone').catch(error => error)
  t.match(await embedders.findOutage(removed), { isAway: true, reason: /not available here/ })
})

t.test('a question that is late leaves its call, for which the server loads the model', async t => {
  const provider = await startEmbeddingProvider(t)
  const endpoint = {
    model: 'ollama/cold',
    url: `${provider.baseUrl}/embeddings`,
    apiKey: '',
    keyHeader: {},
    fields: { model: 'cold' },
  }
  const policy = { timeoutMs: 100, retries: 0 }
  provider.unload(400)
  await t.rejects(callEmbeddings(endpoint, ['Where?'], policy), /within 0.1 s/)
  const left = { ...policy, leaveMs: 60_000 }
  await t.rejects(callEmbeddings(endpoint, ['Where?'], left), /within 0.1 s/)
  await waitUntil('it is loaded', () =>
    callEmbeddings(endpoint, ['Where?'], policy).then(
      () => true,
      () => false,
    ),
  )
  provider.unload(400)
  const [vector] = await callEmbeddings(endpoint, ['Where?'], { ...left, retries: 10 })
  t.equal(vector!.length, 64, 'the answer of the first try counts')
})

t.test('a self-hosted model is asked now and then, so that it stays loaded', async t => {
  const provider = await startEmbeddingProvider(t)
  const env = { ...environment, OLLAMA_BASE_URL: provider.baseUrl, EMBEDDINGS: 'ollama/warm' }
  const open = (usedWithinMs: number) => {
    const warm = new KeepWarm({ everyMs: 20, usedWithinMs })
    const embedders = createEmbedders(readConfig(env), new Set(), () => {}, undefined, warm)
    t.teardown(() => embedders.close())
    return embedders
  }
  await open(3_600_000).load()
  await waitUntil('it is loaded, and asked again', () => provider.calls.length > 3)
  const other = open(3_600_000)
  await other.get('ollama/invented')
  const before = provider.bodies.filter(({ model }) => model === 'invented').length
  t.equal(before, 1)
  await delay(100)
  t.equal(provider.bodies.filter(({ model }) => model === 'invented').length, before)
})

t.test('upstream: memories stand in the space of a provider that is gone', async t => {
  const embedders = createEmbedders(readConfig(environment), new Set(['lab/m']))
  await t.rejects(embedders.get('lab/m'), {
    reason: 'upstream',
    message: /memories stand in its space/,
    hint: /PROVIDERS names no lab; .*reembed/,
  })
})

t.test('invalid: unknown providers, odd names, and providers without a key', async t => {
  const embedders = createEmbedders(readConfig(environment))
  const keyless = 'openai/text-embedding-3-small'
  for (const model of ['gpt', 'nobody/model', 'openai/', 'openai/a b', '/x', keyless])
    await t.rejects(embedders.get(model), { message: /embed/, reason: 'invalid' }, model)
})
