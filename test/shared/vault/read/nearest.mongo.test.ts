import '#test/setup/env.ts'
import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import { Binary, MongoClient, type Document } from 'mongodb'
import t from 'tap'
import { conditionOf } from '#shared/domain/filter.ts'
import { tiers, type EmbeddedMemory, type VaultScope } from '#shared/domain/memory.ts'
import { openMongo } from '#shared/storage/mongo/connect.ts'
import { createIndexes } from '#shared/storage/mongo/indexes.ts'
import { MemoryStore, type NewMemory } from '#shared/vault/base/memories.mongo.ts'
import { createNearestScan } from '#shared/vault/read/search/nearest-scan.mongo.ts'
import { chooseNearestSearch } from '#shared/vault/read/search/nearest.mongo.ts'
import { createSearchIndexes } from '#shared/storage/mongo/search-indexes.ts'
import { memoryPredicate } from '#test/support/checks/memory-predicate.ts'
import { withoutConnectDeadlines } from '#test/setup/connect-deadlines.ts'
import { createAtlasDouble } from '#test/support/doubles/atlas-double.ts'
import type { NearestSearch, NearestQuestion } from '#shared/vault/read/search/nearest.ts'

const dimension = 8
const space = 'test-space_1'
const otherSpace = 'other'
const spaces = [{ space, dimension }]
const day = 86_400_000
const start = Date.UTC(2024, 0, 1)

/** Sets of tags that rows bear in turn; a row with none is nobody's that asks for sets. */
const tagSets = ['[]', '["a"]', '["a","b"]', '["\\"$ne"]', undefined]

/** Every place there is: the core vault, what some see of it, and sessions of which one was deleted once. */
const places: NearestQuestion['partition'][] = [
  { session: null, sessionEpoch: 0 },
  { session: null, sessionEpoch: 0, tagSets: [] },
  { session: null, sessionEpoch: 0, tagSets: ['[]', '["a"]'] },
  { session: null, sessionEpoch: 0, tagSets: ['["\\"$ne"]', '["b"]'] },
  { session: 'ada', sessionEpoch: 0 },
  { session: 'ada', sessionEpoch: 1 },
  { session: 'bob', sessionEpoch: 0 },
]
const scopes: VaultScope[] = ['v1', 'v2'].flatMap(vault =>
  [0, 1].map(epoch => ({ vault, epoch, revision: 1 })),
)

const vectors = fc
  .array(fc.integer({ min: -2, max: 2 }), { minLength: dimension, maxLength: dimension })
  .filter(numbers => numbers.some(number => number !== 0))
  .map(numbers => Float32Array.from(numbers))
/** So few that many rows are equally near; scaled, since no vector need be of unit length. */
const pool = fc
  .sample(vectors, { numRuns: 60, seed: 7 })
  .map((vector, index) => vector.map(value => value / 2 ** (index % 3)))
const days = fc.integer({ min: 0, max: 30 }).map(number => start + number * day)

const memories: fc.Arbitrary<NewMemory> = fc
  .record({
    scope: fc.constantFrom(...scopes),
    place: fc.constantFrom(...places.filter(place => !place.tagSets)),
    tier: fc.constantFrom(...tiers),
    rating: fc.option(fc.integer({ min: 1, max: 10 })),
    at: days,
    vector: fc.constantFrom(...pool),
    text: fc.string(),
    id: fc.uuid(),
    metadata: fc.constantFrom(undefined, { a: 1 }, { a: 2, b: 'x' }, { a: 1, b: 'x' }),
  })
  .map(({ scope: { vault, epoch }, place, tier, rating, at, vector, text, id, metadata }) => ({
    id,
    vault,
    epoch,
    ...place,
    tier,
    role: 'user',
    text,
    at,
    tokens: text.length,
    operation: 'op',
    vector,
    ...(tier > 1 && rating !== null && { importance: rating }),
    ...(metadata && { metadata }),
  }))

const indexedFilters = [
  { metadata: { a: { in: [1, 2] } } },
  { or: [{ metadata: { b: { ne: 'x' } } }, { tier: { gte: 2 } }, { session: 'ada' }] },
  { not: { importance: { gte: 4 }, time: { gt: '2024-01-10' } } },
]

const questions: fc.Arbitrary<NearestQuestion> = fc
  .record(
    {
      partition: fc.constantFrom(...places),
      vector: vectors,
      count: fc.integer({ min: 1, max: 30 }),
      tiers: fc.subarray([...tiers], { minLength: 1 }),
      importance: fc.integer({ min: 1, max: 10 }),
      condition: fc.constantFrom(...indexedFilters.map(filter => conditionOf({ filter })!)),
      from: days,
      to: days,
    },
    { requiredKeys: ['partition', 'vector', 'count'] },
  )
  .map(question => ({ ...question, space }))

const uri = new URL(process.env['MONGODB_URI']!)
uri.pathname = `/nearest-${randomUUID()}`
const mongo = await openMongo(uri.href)
const client = await MongoClient.connect(uri.href)
const database = client.db(mongo.memories.dbName)
const documents = database.collection<Document & { _id: string }>('memories')
t.teardown(async () => {
  await database.dropDatabase()
  await client.close()
  await mongo.close()
})

const stored = fc.sample(memories, { numRuns: 1_200, seed: 11 })
await createIndexes(mongo)
await new MemoryStore(mongo).add(stored, space)
const tagSetOf = new Map(stored.map(({ id }, n) => [id, tagSets[n % tagSets.length]]))
for (const tagSet of tagSets.filter(one => one !== undefined)) {
  const bearing = stored.map(({ id }) => id).filter(id => tagSetOf.get(id) === tagSet)
  await documents.updateMany({ _id: { $in: bearing } }, { $set: { tag_set: tagSet } })
}
await new MemoryStore(mongo).add(
  stored.slice(0, 50).map(memory => ({ ...memory, id: randomUUID() })),
  otherSpace,
)

const scan = createNearestScan(mongo)
const double = createAtlasDouble(mongo, database)
const told: { space: string; reason: string }[] = []
const recent = async () => []
const search = await chooseNearestSearch(double.mongo, {
  recent,
  onScan: event => told.push(event),
})

/** What must be found, out of all that was ever stored, by nothing but arithmetic. */
function expected(
  { vault, epoch }: VaultScope,
  { partition, vector, count, tiers, importance, condition, from, to }: NearestQuestion,
  rows: readonly NewMemory[] = stored,
): string[] {
  const dot = (a: Float32Array, b: Float32Array) =>
    Array.from(a).reduce((sum, value, index) => sum + value * b[index]!, 0)
  const length = (a: Float32Array) => Math.sqrt(dot(a, a))
  const cosine = (a: Float32Array, b: Float32Array) => dot(a, b) / (length(b) * length(a))
  return rows
    .filter(row => row.vault === vault && row.epoch === epoch)
    .filter(row => row.session === partition.session && row.sessionEpoch === partition.sessionEpoch)
    .filter(
      ({ id }) => !partition.tagSets || partition.tagSets.includes(tagSetOf.get(id) ?? 'none'),
    )
    .filter(row => !tiers || tiers.includes(row.tier))
    .filter(row => importance === undefined || (row.importance ?? 0) >= importance)
    .filter(row => !condition || memoryPredicate(condition, partition.session)(row))
    .filter(row => (from === undefined || row.at >= from) && (to === undefined || row.at < to))
    .map(row => ({ id: row.id, near: cosine(row.vector, vector) }))
    .toSorted((a, b) => b.near - a.near || (a.id < b.id ? -1 : 1))
    .slice(0, count)
    .map(({ id }) => id)
}

const idsOf = (rows: EmbeddedMemory[]): string[] => rows.map(({ id }) => id)

const ask = (nearest: NearestSearch, question: NearestQuestion, scope = scopes[0]!) =>
  nearest.candidates(scope, question).then(idsOf)

const plain: NearestQuestion = { partition: places[0]!, space, vector: pool[0]!, count: 20 }

t.test('both ways find exactly the nearest of one place, in the same order', async t => {
  t.match(await createSearchIndexes(double.mongo, spaces), [{ outcome: 'created' }])
  double.finishBuilds()
  await double.syncIndexes()

  let found = 0
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...scopes), questions, async (scope, question) => {
      const ids = expected(scope, question)
      found += ids.length
      const [scanned, searched] = await Promise.all([
        ask(scan, question, scope),
        ask(search, question, scope),
      ])
      return isDeepStrictEqual(scanned, ids) && isDeepStrictEqual(searched, ids)
    }),
    { numRuns: 100 },
  )
  t.ok(found > 100, `the questions had ${found} answers`)
  t.same(told, [], 'no search had to be answered by the scan')
  t.ok(double.searchStages.length >= 66)
})

t.test('rows are whole', async t => {
  for (const nearest of [scan, search]) {
    const [row] = await nearest.candidates(scopes[0]!, { ...plain, tiers: [2], importance: 1 })
    const { id, tier, role, text, at, tokens, importance, vector, metadata } = stored.find(
      memory => memory.id === row!.id,
    )!
    t.same(row, {
      id,
      tier,
      role,
      text,
      at,
      tokens,
      importance,
      vector,
      ...(metadata && { metadata }),
    })
    t.ok(row!.vector instanceof Float32Array)
  }
})

t.test('what was deleted since the index saw it is never found', async t => {
  const ids = await ask(search, { ...plain, count: 30 })
  const [deleted, tombstone, barestTombstone, overtaken] = ids as [string, string, string, string]
  const before = await documents.find({ _id: { $in: ids } }).toArray()
  await documents.deleteOne({ _id: deleted })
  await documents.replaceOne({ _id: tombstone }, { vault: 'v1', tomb_at: new Date() })
  await documents.replaceOne({ _id: barestTombstone }, { tomb_at: new Date() })
  await documents.updateOne({ _id: overtaken }, { $set: { epoch: 9 } })

  const gone = new Set(ids.slice(0, 4))
  const left = stored.filter(({ id }) => !gone.has(id))
  const remaining = expected(scopes[0]!, { ...plain, count: 30 }, left)
  t.same(remaining.slice(0, 26), ids.slice(4))
  t.same(await ask(search, { ...plain, count: 30 }), remaining, 'others take their places')
  t.same(await ask(scan, { ...plain, count: 30 }), remaining)
  t.same(told, [])

  for (const document of before)
    await documents.replaceOne({ _id: document._id }, document, { upsert: true })
})

t.test('the stage stays within the rules for any count', async t => {
  for (const count of [1, 10, 500, 2_000]) {
    await ask(search, { ...plain, count })
    const { limit, numCandidates, queryVector } = double.searchStages.at(-1)!
    t.ok(limit >= count && limit <= numCandidates && numCandidates <= 10_000, `${count} rows`)
    t.ok(numCandidates >= Math.min(10_000, 20 * count))
    t.equal(queryVector.buffer[0], Binary.VECTOR_TYPE.Float32)
  }
})

t.test('the scan answers wherever the index cannot', async t => {
  const wanted = expected(scopes[0]!, plain)
  const answersByScan = async (what: string, reason: RegExp) => {
    told.length = 0
    t.same(await ask(search, plain), wanted, what)
    t.same(await ask(search, plain), wanted, `${what}, again`)
    t.match(told, [{ space, reason }], 'which is told once')
    t.equal(told.length, 1)
  }

  double.dropIndexes()
  await answersByScan('there is no index', /does not exist/)
  await createSearchIndexes(double.mongo, spaces)
  await answersByScan('the index is being built', /INITIAL_SYNC/)
  double.failBuilds()
  await answersByScan('the build failed', /FAILED/)

  double.dropIndexes()
  await createSearchIndexes(double.mongo, [{ space, dimension: 16 }])
  double.finishBuilds()
  await answersByScan('the index has another dimension', /indexed with 16/)

  double.dropIndexes()
  await createSearchIndexes(double.mongo, spaces)
  double.failBuilds()
  await answersByScan('another build failed', /FAILED/)

  double.finishBuilds()
  const answered = double.searchStages.length
  t.same(await ask(search, plain), wanted)
  t.equal(double.searchStages.length, answered + 1, 'the index answers as soon as it can')
  double.failBuilds()
  await answersByScan('and that ends again', /FAILED/)
  double.finishBuilds()
})

t.test('an index that was made without metadata answers what asks for none', async t => {
  const [{ definition, ...index }] = double.createdIndexes as [
    { definition: { fields: Document[] }; name: string; type: string },
  ]
  const fields = definition.fields.filter(({ path }) => path !== 'metadata')
  double.dropIndexes()
  await double.mongo.memories.createSearchIndex({ ...index, definition: { fields } })
  double.finishBuilds()
  await double.syncIndexes()
  t.match(await createSearchIndexes(double.mongo, spaces), [
    { outcome: 'present', reason: /without the filter metadata/ },
  ])
  told.length = 0
  t.same(await ask(search, plain), expected(scopes[0]!, plain))
  t.same(told, [])
  const filtered = { ...plain, condition: conditionOf({ metadata: { a: 1 } }) }
  t.same(await ask(search, filtered), expected(scopes[0]!, filtered))
  t.match(told, [{ space, reason: /metadata/ }])
  double.dropIndexes()
  await createSearchIndexes(double.mongo, spaces)
  double.finishBuilds()
  await double.syncIndexes()
})

t.test('an empty answer of a working index is an answer', async t => {
  told.length = 0
  t.same(await ask(search, plain, { vault: 'nobody', epoch: 0, revision: 0 }), [])
  t.same(told, [])
})

t.test('a server without vector search is scanned', async t => {
  t.equal(await mongo.hasVectorSearch(), false)
  const nearest = await chooseNearestSearch(mongo, {
    recent,
    onScan: () => t.fail('there is no index to miss'),
  })
  t.same(await ask(nearest, plain), expected(scopes[0]!, plain))

  const doubtful = await chooseNearestSearch(
    { ...mongo, hasVectorSearch: async () => true },
    { recent },
  )
  t.same(await ask(doubtful, plain), expected(scopes[0]!, plain), 'also one that hides it')
})

t.test('the scan reads any number of batches and finds the best among all', async t => {
  const scope = { vault: 'large', epoch: 0, revision: 1 }
  const large = fc
    .sample(fc.tuple(memories, vectors), { numRuns: 2_200, seed: 13 })
    .map(([memory, vector]) => ({ ...memory, vault: 'large', epoch: 0, ...places[0]!, vector }))
  await new MemoryStore(mongo).add(large, space)

  for (const count of [1, 7, 2_000]) {
    const question = { ...plain, vector: pool[2]!, count }
    t.same(await ask(scan, question, scope), expected(scope, question, large), `${count} rows`)
  }
})

t.test('a scan ends in time', async t => {
  const scope = { vault: 'large', epoch: 0, revision: 1 }
  const hasty = await openMongo(withoutConnectDeadlines(uri.href))
  t.teardown(() => hasty.close())
  const late = createNearestScan(hasty, { withinMs: 1 })
  await t.rejects(late.candidates(scope, plain), { name: 'Refusal', reason: 'unavailable' })

  // Two rows a batch and a pause at each: the time is over when the second batch is asked for.
  type Find = typeof mongo.memories.find
  const slowly = ((...args: Parameters<Find>) =>
    hasty.memories
      .find(...args)
      .batchSize(2)
      .map(row => {
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100)
        return row
      })) as Find
  const memories = Object.create(hasty.memories, { find: { value: slowly } })
  const slow = createNearestScan({ memories }, { withinMs: 150 })
  await t.rejects(slow.candidates(scope, plain), { reason: 'unavailable', message: /too large/ })
})

t.test('a store out of reach is said to be so', async t => {
  const gone = await openMongo(uri.href)
  const nearest = [createNearestScan(gone), await chooseNearestSearch(gone, { recent })]
  await gone.close()
  for (const way of nearest)
    await t.rejects(way.candidates(scopes[0]!, plain), { name: 'Refusal', reason: 'unavailable' })
})

t.test('vectors as models make them', async t => {
  const scope = { vault: 'model', epoch: 0, revision: 1 }
  const floats = fc.float({ min: -1, max: 1, noNaN: true, noDefaultInfinity: true })
  const long = fc.array(floats, { minLength: 384, maxLength: 384 })
  const rows = fc
    .sample(fc.tuple(memories, long), { numRuns: 100, seed: 17 })
    .map(([memory, vector]) => {
      const unit = Float32Array.from(vector, value => value / (Math.hypot(...vector) || 1))
      return { ...memory, vault: 'model', epoch: 0, ...places[0]!, vector: unit }
    })
  await new MemoryStore(mongo).add(rows, 'model')
  await createSearchIndexes(double.mongo, [{ space: 'model', dimension: 384 }])
  double.finishBuilds()
  await double.syncIndexes()
  told.length = 0

  for (const { vector } of rows.slice(0, 5)) {
    const question = { ...plain, space: 'model', vector, count: 50 }
    const ids = expected(scope, question, rows)
    t.same(await ask(scan, question, scope), ids)
    t.same(await ask(search, question, scope), ids)
  }
  t.same(told, [])
})

t.test('the double keeps the order of stages; a missing index answers nothing', async t => {
  const { memories } = createAtlasDouble(mongo, database).mongo
  const stage = { index: 'i', path: 'p', queryVector: [1], numCandidates: 20, limit: 5 }
  await t.rejects(memories.aggregate([{ $match: {} }, { $vectorSearch: stage }]).toArray())
  t.same(await memories.aggregate([{ $vectorSearch: stage }]).toArray(), [])
})
