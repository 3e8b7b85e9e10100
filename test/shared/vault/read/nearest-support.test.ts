import '#test/setup/env.ts'
import t from 'tap'
import { openMongo } from '#shared/storage/mongo/connect.ts'
import { chooseNearestSearch } from '#shared/vault/read/search/nearest.mongo.ts'
import { serverError, startMongoDouble } from '#test/support/doubles/mongo-double.ts'

const question = {
  partition: { session: null, sessionEpoch: 0 },
  space: 's',
  vector: new Float32Array([1, 0]),
  count: 5,
}
const scope = { vault: 'v', epoch: 0, revision: 1 }

t.test('a deployment without vector search is asked again after ten minutes', async t => {
  const double = await startMongoDouble(t)
  const mongo = await openMongo(double.url)
  t.teardown(() => mongo.close())
  let code: number | undefined = 31_082
  double.rule = name =>
    name === 'aggregate' && code !== undefined ? serverError(code, 'SearchNotEnabled') : undefined
  let time = 0
  const missing: unknown[] = []
  const nearest = await chooseNearestSearch(mongo, {
    recent: async () => [],
    now: () => time,
    onMissing: error => missing.push(error),
  })
  const asked = async (): Promise<number> => {
    double.commands.length = 0
    await nearest.candidates(scope, question)
    return double.commands.filter(command => 'aggregate' in command).length
  }
  t.equal(missing.length, 1, 'concluded at the start')
  t.equal(nearest.hasIndex(), false)
  t.equal(await asked(), 0)
  t.equal(await nearest.indexed(scope, question), null)

  time = 600_000
  t.equal(nearest.hasIndex(), true)
  t.equal(await asked(), 1)
  t.match(missing[1], { code: 31_082 }, 'concluded again, with the answer')
  t.equal(await asked(), 0)

  time = 1_200_000
  code = undefined
  t.ok((await asked()) > 0)
  t.equal(nearest.hasIndex(), true, 'search has been enabled since')
})

t.test('what is newer than any index may be is read beside it', async t => {
  const double = await startMongoDouble(t)
  const mongo = await openMongo(double.url)
  t.teardown(() => mongo.close())
  const definition = {
    fields: [
      { type: 'vector', path: 'vectors.s', numDimensions: 2, similarity: 'cosine' },
      ...['vault', 'epoch', 'session', 'session_epoch', 'tier', 'at', 'importance', 'tag_set'].map(
        path => ({ type: 'filter', path }),
      ),
    ],
  }
  const index = { name: 'vectors_s', queryable: true, latestDefinition: definition }
  double.rule = (name, command) =>
    name === 'aggregate' && JSON.stringify(command['pipeline']).includes('listSearchIndexes')
      ? { ok: 1, cursor: { id: 0n, ns: 'vault.memories', firstBatch: [index] } }
      : undefined
  const row = {
    id: crypto.randomUUID(),
    tier: 1,
    role: 'user',
    text: 'new',
    at: 0,
    tokens: 1,
    vector: new Float32Array([1, 0]),
  } as const
  const nearest = await chooseNearestSearch(mongo, { recent: async () => [row] })
  t.same(await nearest.indexed(scope, question), [row])
  const flooded = await chooseNearestSearch(mongo, { recent: async () => 'too-many' })
  t.equal(await flooded.indexed(scope, question), null, 'more than an index search would save')
})
