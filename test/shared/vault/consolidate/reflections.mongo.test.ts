import { MongoClient, type Document } from 'mongodb'
import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import { commandListeners } from '#shared/storage/mongo/connect.ts'
import { streamUnconsolidated } from '#shared/vault/consolidate/reflections.mongo.ts'
import { createTestBackend } from '#test/support/start/backend.ts'

const finds: Document[] = []
commandListeners.push(({ commandName, command }) => {
  if (commandName === 'find') finds.push(command as Document)
})
const backend = await createTestBackend(t)
const { mongo, memories, embedders, config } = backend
const { space, dimension } = await embedders.get()

const scope = { vault: mintId(), epoch: 1, revision: 0 }
const vector = new Float32Array(dimension).fill(1 / Math.sqrt(dimension))
const count = 3_000
const waiting = 40

await memories.add(
  Array.from({ length: count }, (_, n) => ({
    id: mintId(),
    tier: 1 as const,
    role: 'user' as const,
    text: `memory ${n}`,
    at: n * 1_000,
    tokens: 2,
    vault: scope.vault,
    epoch: scope.epoch,
    session: null,
    sessionEpoch: 0,
    operation: mintId(),
    vector,
  })),
  space,
)
await mongo.memories.updateMany(
  { vault: { $eq: scope.vault }, at: { $lt: new Date((count - waiting) * 1_000) } },
  { $set: { consolidated: true } },
)

t.test('what waits is read oldest first, by an index that holds nothing else', async t => {
  const seen: number[] = []
  for await (const { at } of streamUnconsolidated(mongo, scope, { tier: 1, space })) seen.push(at)
  const expected = Array.from({ length: waiting }, (_, n) => (count - waiting + n) * 1_000)
  t.same(seen, expected)

  const { filter, sort, projection } = finds.at(-1)!
  const client = await MongoClient.connect(config.mongodbUri)
  t.teardown(() => client.close())
  const { executionStats, queryPlanner } = await client
    .db(new URL(config.mongodbUri).pathname.slice(1))
    .collection('memories')
    .find(filter, { sort, projection })
    .explain('executionStats')
  t.match(JSON.stringify(queryPlanner.winningPlan), /"indexName":"unconsolidated"/)
  t.notMatch(JSON.stringify(queryPlanner.winningPlan), /"stage":"SORT"/)
  t.equal(executionStats.totalDocsExamined, waiting)
})

t.test('it stops reading where the caller stops', async t => {
  const rows = streamUnconsolidated(mongo, scope, { tier: 1, space })
  for await (const { text } of rows) {
    t.equal(text, `memory ${count - waiting}`)
    break
  }
  t.same(await rows.next(), { done: true, value: undefined })
})
