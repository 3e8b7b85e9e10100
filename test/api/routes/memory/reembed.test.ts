import t from 'tap'
import { acceptReembedding, reembedStep } from '#shared/vault/reembed/reembed.ts'
import { presentOperation } from '#api/present/operation.ts'
import { mintId } from '#shared/core/ids.ts'
import { addVectors, textsWithoutVector } from '#shared/vault/reembed/vector-spaces.mongo.ts'
import { acceptClearing } from '#shared/vault/delete/clear-vault.ts'
import { findOperation } from '#shared/operations/operation-rows.postgres.ts'
import { raiseEpoch, raiseSessionEpoch } from '#shared/vault/base/vaults.postgres.ts'
import { jobHandlers } from '#workers/handlers.ts'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { startService } from '#test/support/start/start-service.ts'
import { startEmbeddingProvider } from '#test/support/doubles/embedding-provider.ts'
import {
  resolveCaller,
  readDocuments,
  insertMemories,
} from '#test/support/start/insert-memories.ts'
import { cutUpdates } from '#test/support/checks/alter.ts'
import { billedEvents } from '#test/support/checks/observe.ts'
import { countSteps } from '#test/support/checks/observe-jobs.ts'

const provider = await startEmbeddingProvider(t)
const narrow = await startEmbeddingProvider(t, 32)
const env = { OLLAMA_BASE_URL: provider.baseUrl, MISTRAL_BASE_URL: narrow.baseUrl }
const { backend, base } = await startService(t, { env })
/** Nobody takes jobs on this one: its steps wait for the test. */
const { backend: still, base: calm } = await startService(t, { env, jobs: [] })
const as = (key: string) => createTestClient(base, key)
const one = 'ollama/one'
const other = 'mistral/other'
const spaceOfOne = 'ollama__one-64'

const reembed = (key: string, body: object, headers = {}) =>
  as(key).post('/v1/memory/reembed', body, headers)
const find = async (key: string, embeddings?: string, headers = {}) => {
  const body = { query: 'fact number', limit: 200, ...(embeddings && { embeddings }) }
  return (await as(key).post('/v1/memory/search', body, headers)).body.totalMemories as number
}
const facts = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ text: `fact number ${n}` }))
const spacesOf = async (key: string, service = backend) => {
  const documents = await readDocuments(service, key)
  return [...new Set(documents.flatMap(({ vectors }) => Object.keys(vectors)))].toSorted()
}

t.test('200: every memory gets a vector of the model, both models find it', async t => {
  const key = await buildKey(backend)
  await insertMemories(backend, key, facts(20))
  await insertMemories(backend, key, [
    { text: 'fact number of facts', tier: 2, role: 'system', importance: 9 },
  ])
  await insertMemories(backend, key, facts(5), { session: 'chat' })
  t.equal(await find(key, one), 0)

  const { status, body } = await reembed(key, { embeddings: one })
  t.equal(status, 200)
  t.match(body, {
    key: `${key.slice(0, 6)}…${key.slice(-4)}`,
    embeddings: one,
    dimension: 64,
    embedded: 26,
    dropped: 0,
    operation_id: String,
    message: /26/,
  })
  t.equal(await find(key), 21)
  t.equal(await find(key, one), 21)
  t.equal(await find(key, one, { 'x-session-id': 'chat' }), 5)
  t.same(await spacesOf(key), ['local_v1', spaceOfOne])

  const again = await reembed(key, { embeddings: one })
  t.match(again.body, { embedded: 0, dropped: 0 })
})

t.test(
  '200: drop_previous takes the other vectors away, also from indexes that are held',
  async t => {
    const key = await buildKey(backend)
    await insertMemories(backend, key, facts(700))
    const before = await readDocuments(backend, key)
    t.equal(await find(key), 200, 'the old space is held')
    await reembed(key, { embeddings: other })
    t.equal(await find(key, other), 200)
    const { body } = await reembed(key, { embeddings: one, drop_previous: true })
    t.match(body, { embedded: 700, dropped: 700, dimension: 64 })
    t.same(await spacesOf(key), [spaceOfOne])
    t.equal(await find(key, one), 200)
    t.equal(await find(key), 200, 'what names no model goes where the vault went')
    t.equal(await find(key, 'local'), 0)
    t.equal(await find(key, other), 0)

    const bare = (documents: typeof before) =>
      documents.map(document => ({ ...document, vectors: null, version: null }))
    t.same(bare(await readDocuments(backend, key)), bare(before), 'nothing else has changed')
  },
)

t.test('200: an empty vault; nothing is billed', async t => {
  const key = await buildKey(backend)
  t.match(await reembed(key, { embeddings: one }), { status: 200, body: { embedded: 0 } })
  const told = await buildKey(backend)
  await insertMemories(backend, told, facts(3))
  const { body } = await reembed(told, { embeddings: one })
  const bills = await billedEvents(backend, told)
  t.same(
    bills.filter(({ memoryTokens }) => memoryTokens),
    [],
  )
  const operation = await as(told).get(`/v1/operations/${body.operation_id}`)
  t.match(operation.body, {
    kind: 'reembed',
    state: 'done',
    progress: { done: 3, total: 3 },
    outcome: { status: 200, body },
  })
  const { keyRow } = await resolveCaller(backend, told)
  t.equal(keyRow.rawUnits, 3, 'the debt is as it was')
})

t.test('502: a model that does not answer is refused before anything is promised', async t => {
  const key = await buildKey(backend)
  provider.fail(401, 1)
  t.equal((await reembed(key, { embeddings: 'ollama/down' })).status, 502)
  t.same((await as(key).get('/v1/operations')).body.items, [])
})

t.test('202: respond-async; one Idempotency-Key is one operation', async t => {
  const key = await buildKey(still)
  await insertMemories(still, key, facts(3))
  const client = createTestClient(calm, key)
  const ask = () =>
    client.post(
      '/v1/memory/reembed',
      { embeddings: one },
      { prefer: 'respond-async', 'idempotency-key': 'once' },
    )
  const first = await ask()
  t.match(first, { status: 202, body: { status: 'processing', operation_id: String } })
  t.same((await ask()).body, first.body)
  t.match(await client.send('DELETE', `/v1/operations/${first.body.operation_id}`), { status: 200 })
  await reembedStep(still, { operation: first.body.operation_id, n: 0 })
  t.same(Object.keys((await readDocuments(still, key))[0]!.vectors), ['local_v1'])
})

/** A re-embedding that is promised, and its steps, which the test takes. */
async function promised(key: string, dropPrevious = false, model = one) {
  const caller = await resolveCaller(still, key)
  const operation = mintId()
  await acceptReembedding(still, caller, { operation, model, dropPrevious, awaited: false })
  const row = async () => {
    const found = await findOperation(still.postgres.query, caller.account, operation)
    return found && { ...found, outcome: presentOperation(found).outcome }
  }
  return {
    caller,
    row,
    step: (n: number) => reembedStep(still, { operation, n }),
    /** Goes on from a step until it has ended. */
    async rest(from: number) {
      for (let n = from; (await row())?.state !== 'done'; n++) {
        if (n > 100) throw new Error('it does not end')
        await reembedStep(still, { operation, n })
      }
    },
  }
}

t.test('what arrives and what is edited meanwhile is embedded too', async t => {
  const key = await buildKey(still)
  const ids = await insertMemories(still, key, facts(600))
  const { step, rest, row, caller } = await promised(key)
  await step(0)
  await step(1)
  t.match(await row(), { state: 'running', done: 256, total: 600 })
  // Older than what was embedded already: it lies behind the place where the look goes on.
  await insertMemories(still, key, [{ text: 'fact number late', at: 1_000 }])
  await insertMemories(still, key, [{ text: 'fact number apart', at: 1_000 }], { session: '0' })
  const { vault, epoch } = caller.scope
  const edited = { vault, _id: ids[10]! }
  await still.mongo.memories.updateOne(edited, {
    $set: { text: 'something else altogether' },
    $unset: { [`vectors.${spaceOfOne}`]: '' },
    $inc: { version: 1 },
  })
  await rest(2)
  const missing = await still.mongo.memories.countDocuments({
    vault,
    epoch,
    [`vectors.${spaceOfOne}`]: { $exists: false },
  })
  t.equal(missing, 0)
  const document = await still.mongo.memories.findOne(edited)
  const embedder = await still.embedders.get(one)
  const [vector] = await embedder.embedTexts(['something else altogether'])
  t.same(document!.vectors[spaceOfOne]!.toFloat32Array(), vector)
  t.match((await row())?.outcome, { status: 200, body: { embedded: 603 } })
})

t.test(
  'a text that changed while it was embedded does not get the vector of the old one',
  async t => {
    const key = await buildKey(still)
    const [id] = await insertMemories(still, key, facts(1))
    const { scope } = await resolveCaller(still, key)
    const embedder = await still.embedders.get(one)
    const read = await textsWithoutVector(still.mongo, scope, embedder.space, [id!])
    const [vector] = await embedder.embedTexts(read.map(({ text }) => text))
    await still.mongo.memories.updateOne(
      { vault: scope.vault, _id: id! },
      { $set: { text: 'changed' }, $inc: { version: 1 } },
    )
    await addVectors(still.mongo, scope, embedder.space, [{ ...read[0]!, vector: vector! }])
    const [document] = await readDocuments(still, key)
    t.same(Object.keys(document!.vectors), ['local_v1'])
  },
)

t.test('killed between writing and settling, the next run announces what was written', async t => {
  const key = await buildKey(still)
  await insertMemories(still, key, facts(30))
  const client = createTestClient(calm, key)
  const search = async () => {
    const asked = { query: 'fact number', limit: 100, embeddings: one }
    return (await client.post('/v1/memory/search', asked)).body.totalMemories
  }
  t.equal(await search(), 0, 'an empty image is held')
  const { step, rest, row } = await promised(key)
  await step(0)
  const { restore } = await cutUpdates(still, 'operation_steps')
  await t.rejects(step(1), { message: 'cut' })
  await restore()
  t.equal(await search(), 0)
  const calls = provider.calls.length
  await rest(1)
  t.equal(provider.calls.length, calls, 'nothing is embedded twice')
  t.equal(await search(), 30)
  t.match((await row())?.outcome, { body: { embedded: 30 } })
})

t.test('a step that runs twice, and twice at once, counts once', async t => {
  const key = await buildKey(still)
  await insertMemories(still, key, facts(300))
  const { step, rest, row } = await promised(key, true)
  await step(0)
  await Promise.all([step(1), step(1), step(1)])
  await step(0)
  await step(1)
  await rest(2)
  t.match((await row())?.outcome, { status: 200, body: { embedded: 300, dropped: 300 } })
  t.equal(await countSteps(still, (await row())!.id), 0)
})

t.test('409: the vault was cleared meanwhile; a cleared session is passed over', async t => {
  const key = await buildKey(still)
  await insertMemories(still, key, facts(3))
  const { step, row, caller } = await promised(key)
  await step(0)
  await still.postgres.transaction(tx => raiseEpoch(tx, caller.scope.vault))
  await step(1)
  t.match((await row())?.outcome, { status: 409, body: { error: /cleared/ } })

  const told = await buildKey(still)
  await insertMemories(still, told, facts(3))
  await insertMemories(still, told, facts(4), { session: 'gone' })
  const { scope } = await resolveCaller(still, told)
  await still.postgres.transaction(tx => raiseSessionEpoch(tx, scope.vault, 'gone'))
  const second = await promised(told)
  await second.rest(0)
  t.match((await second.row())?.outcome, { body: { embedded: 3 } })
})

t.test('one that could not be finished is failed, and goes on when it is tried again', async t => {
  const key = await buildKey(still)
  await insertMemories(still, key, facts(3))
  const { step, rest, row, caller } = await promised(key)
  await step(0)
  const job = {
    id: mintId(),
    data: { operation: (await row())!.id, vault: caller.scope.vault, n: 1 },
    signal: new AbortController().signal,
    isRetry: true,
    isLastTry: true,
    claim: 0,
  }
  provider.fail(401, 1)
  t.match(await jobHandlers.reembed(still, [job]), [{ status: 'cancel' }])
  const error = 'The embedding model ollama/one refused (status 401): scripted failure'
  t.match(await row(), { state: 'failed', outcome: { status: 502, body: { error } } })
  await rest(1)
  t.match(await row(), { state: 'done', outcome: { body: { embedded: 3 } } })
})

/** The model of the vault of a key: requests that name none use it. */
const modelOf = async (key: string) => (await resolveCaller(still, key)).keyRow.embeddingModel

/** The same service, in which something happens while a step waits for its model. */
const meanwhile = (happens: () => Promise<unknown>): typeof still => ({
  ...still,
  embedders: {
    ...still.embedders,
    async get(model) {
      const embedder = await still.embedders.get(model)
      return {
        ...embedder,
        async embedEach(texts, signal) {
          const vectors = await embedder.embedEach(texts, signal)
          await happens()
          return vectors
        },
      }
    },
  },
})

t.test('409: a reset while a step waits for its model', async t => {
  const key = await buildKey(still)
  await insertMemories(still, key, facts(3))
  const before = await modelOf(key)
  const { step, row, caller } = await promised(key)
  await step(0)
  const reset = { operation: mintId(), session: null, reset: true, awaited: false }
  const service = meanwhile(() => acceptClearing(still, caller, reset))
  await reembedStep(service, { operation: (await row())!.id, n: 1 })
  t.match((await row())?.outcome, { status: 409, body: { error: /cleared/ } })
  t.equal(await modelOf(key), before)
})

t.test('409: a later re-embedding moves the vault between the steps, or during one', async t => {
  for (const isDuring of [false, true]) {
    const key = await buildKey(still)
    await insertMemories(still, key, facts(3))
    const earlier = await promised(key, true)
    await earlier.step(0)
    const later = await promised(key, false, other)
    if (!isDuring) await later.rest(0)
    const service = isDuring ? meanwhile(() => later.rest(0)) : still
    await reembedStep(service, { operation: (await earlier.row())!.id, n: 1 })
    t.match((await earlier.row())?.outcome, { status: 409, body: { error: /Another/ } })
    t.equal(await modelOf(key), other)
    t.ok((await spacesOf(key, still)).includes('local_v1'), 'nothing is dropped')
  }
})

t.test('two models at once end with both, and the vault has the later one', async t => {
  const key = await buildKey(still)
  await insertMemories(still, key, facts(300))
  const earlier = await promised(key)
  const later = await promised(key, false, other)
  for (const step of [0, 1]) await Promise.all([earlier.step(step), later.step(step)])
  await earlier.rest(2)
  t.equal(await modelOf(key), one)
  await later.rest(2)
  t.equal(await modelOf(key), other)
  for (const { row } of [earlier, later])
    t.match((await row())?.outcome, { status: 200, body: { embedded: 300 } })
  t.same(await spacesOf(key, still), ['local_v1', 'mistral__other-32', spaceOfOne])
})
