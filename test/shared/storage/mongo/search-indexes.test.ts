import '#test/setup/env.ts'
import { randomUUID } from 'node:crypto'
import { MongoClient, MongoServerError } from 'mongodb'
import t from 'tap'
import { openMongo } from '#shared/storage/mongo/connect.ts'
import { createSearchIndexes } from '#shared/storage/mongo/search-indexes.ts'
import { createAtlasDouble } from '#test/support/doubles/atlas-double.ts'

const uri = new URL(process.env['MONGODB_URI']!)
uri.pathname = `/search-indexes-${randomUUID()}`
const mongo = await openMongo(uri.href)
const client = await MongoClient.connect(uri.href)
t.teardown(async () => {
  await client.close()
  await mongo.close()
})

const space = 'test-space_1'
const spaces = [{ space, dimension: 8 }]
const fresh = () => createAtlasDouble(mongo, client.db())
const index = `vectors_${space}`

t.test('every space gets one, with all that a question may filter by', async t => {
  const deployment = fresh()
  const outcomes = await createSearchIndexes(deployment.mongo, [
    ...spaces,
    { space: 'b', dimension: 3_072 },
  ])
  t.same(outcomes, [
    { index, outcome: 'created' },
    { index: 'vectors_b', outcome: 'created' },
  ])
  const filters = 'vault epoch session session_epoch tier at importance tag_set metadata'
  const fields = filters.split(' ').map(path => ({ type: 'filter', path }))
  const vector = { type: 'vector', path: 'vectors.b', numDimensions: 3_072, similarity: 'cosine' }
  t.same(deployment.createdIndexes[1], {
    name: 'vectors_b',
    type: 'vectorSearch',
    definition: { fields: [vector, ...fields] },
  })
  t.same(await createSearchIndexes(deployment.mongo, spaces), [{ index, outcome: 'present' }])
})

t.test('one of another definition is left alone', async t => {
  const deployment = fresh()
  await createSearchIndexes(deployment.mongo, [{ space, dimension: 16 }])
  const [before] = deployment.createdIndexes
  const outcomes = await createSearchIndexes(deployment.mongo, spaces)
  t.same(outcomes, [{ index, outcome: 'different' }])
  t.same(deployment.createdIndexes, [before])
})

t.test('quantization and method are those that were chosen', async t => {
  const deployment = fresh()
  const options = { quantization: 'scalar', method: 'flat' } as const
  t.same(await createSearchIndexes(deployment.mongo, spaces, options), [
    { index, outcome: 'created' },
  ])
  t.match(deployment.createdIndexes[0]?.definition.fields[0], {
    type: 'vector',
    quantization: 'scalar',
    indexingMethod: 'flat',
  })
  const again = await createSearchIndexes(deployment.mongo, spaces)
  t.same(again, [{ index, outcome: 'present' }], 'an index of an operator is respected')
  t.equal(deployment.createdIndexes.length, 1)
})

t.test('where flat indexes are not served the usual one is created, and named', async t => {
  const deployment = fresh()
  const { memories } = deployment.mongo
  const createSearchIndex = (description: Parameters<typeof memories.createSearchIndex>[0]) => {
    if (!JSON.stringify(description).includes('indexingMethod'))
      return memories.createSearchIndex(description)
    const message = 'unrecognized field "indexingMethod"'
    return Promise.reject(new MongoServerError({ message, errmsg: message, code: 8 }))
  }
  const older = new Proxy(memories, {
    get: (target, name) =>
      name === 'createSearchIndex' ? createSearchIndex : Reflect.get(target, name),
  })
  const options = { quantization: 'binary', method: 'flat' } as const
  const outcomes = await createSearchIndexes(
    { ...deployment.mongo, memories: older },
    spaces,
    options,
  )
  t.match(outcomes, [{ index, outcome: 'created', reason: /not with the flat method/ }])
  const [field] = deployment.createdIndexes[0]!.definition.fields
  t.match(field, { quantization: 'binary' })
  t.notOk('indexingMethod' in field!)
})

t.test('two releases at once', async t => {
  const deployment = fresh()
  const both = [1, 2].map(() => createSearchIndexes(deployment.mongo, spaces))
  for (const [outcome] of await Promise.all(both))
    t.ok(['created', 'present'].includes(outcome!.outcome))
  t.equal(deployment.createdIndexes.length, 1)
})

t.test('a deployment that refuses one stops no release', async t => {
  const deployment = fresh()
  deployment.refuseCreation('The maximum number of FTS indexes has been reached', 8_000)
  const outcomes = await createSearchIndexes(deployment.mongo, spaces)
  t.match(outcomes, [{ index, outcome: 'refused', reason: /maximum number/ }])
  deployment.refuseCreation('Search index commands are only supported with Atlas.', 115)
  t.same(await createSearchIndexes(deployment.mongo, spaces), [])
})

t.test('a server without vector search gets none', async t => {
  t.same(await createSearchIndexes(mongo, spaces), [])
  const hiding = { ...mongo, hasVectorSearch: async () => true }
  t.same(await createSearchIndexes(hiding, spaces), [], 'nor one that hides it')
})

t.test('unavailable: the store is out of reach', async t => {
  const gone = await openMongo(uri.href)
  await gone.close()
  const hiding = { ...gone, hasVectorSearch: async () => true }
  await t.rejects(createSearchIndexes(hiding, spaces), { name: 'Refusal', reason: 'unavailable' })
})
