import '#test/setup/env.ts'
import { randomUUID } from 'node:crypto'
import { MongoClient } from 'mongodb'
import t from 'tap'
import { openMongo } from '#shared/storage/mongo/connect.ts'
import { createSearchIndexes } from '#shared/storage/mongo/search-indexes.ts'
import { createAtlasDouble } from '#test/support/atlas-double.ts'

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
  const filters = [
    'vault',
    'epoch',
    'session',
    'session_epoch',
    'tier',
    'at',
    'importance',
    'tag_set',
  ]
  const fields = filters.map(path => ({ type: 'filter', path }))
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

t.test('two releases at once', async t => {
  const deployment = fresh()
  const both = [1, 2].map(() => createSearchIndexes(deployment.mongo, spaces))
  for (const [outcome] of await Promise.all(both)) {
    t.ok(['created', 'present'].includes(outcome!.outcome))
  }
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
