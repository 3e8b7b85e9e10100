import { MongoClient, type CommandStartedEvent, type Document } from 'mongodb'
import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import type { VaultScope } from '#shared/domain/memory.ts'
import { commandListeners } from '#shared/storage/mongo/connect.ts'
import { listedRows, type ListPageQuery } from '#shared/vault/read/lists/listing.mongo.ts'
import { countTiers } from '#shared/vault/read/lists/counts.mongo.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { insertStoredMemories } from '#test/support/checks/stored-memories.ts'
import { insertVault } from '#test/support/checks/alter.ts'

const asked: Document[] = []
commandListeners.push(({ commandName, command }: CommandStartedEvent) => {
  if (commandName === 'find') asked.push(command)
})
const backend = await createTestBackend(t)
const { mongo } = backend
// Explaining is a command of its own, through a client that nobody watches.
const client = new MongoClient(backend.config.mongodbUri)
const database = client.db(mongo.memories.dbName)
const scope: VaultScope = { vault: mintId(), epoch: 1, revision: 0 }
t.teardown(async () => {
  await mongo.memories.deleteMany({ vault: scope.vault })
  await client.close()
})

const total = 20_000
const shared = Date.parse('2025-06-01T00:00:00Z')
const begin = Date.parse('2025-01-01T00:00:00Z')

/** Every twentieth row is a reflection; rows 8,000 to 9,999 are of one millisecond. */
const atOf = (index: number): number =>
  index >= 8_000 && index < 10_000 ? shared : begin + index * 60_000 * (index < 8_000 ? 1 : 25)

await insertVault(backend, scope.vault)
for (let start = 0; start < total; start += 10_000) {
  await insertStoredMemories(
    backend,
    scope,
    Array.from({ length: 10_000 }, (_, index) => ({
      text: `memory number ${start + index}`,
      at: atOf(start + index),
      tokens: 4,
      ...(index % 20 === 0 && {
        tier: index % 200 === 0 ? 3 : 2,
        importance: 1 + ((index / 20) % 10),
      }),
    })),
    { vectors: false },
  )
}

const everything = {
  tier: undefined,
  importance: undefined,
  from: undefined,
  to: undefined,
  search: undefined,
} as const

/** What the ranges of a page cost, all together. */
async function costOf(read: Partial<ListPageQuery>) {
  asked.length = 0
  const rows = await listedRows(mongo, scope, {
    ...everything,
    sort: 'date',
    order: 'newest_first',
    after: undefined,
    count: 51,
    ...read,
  })
  const cost = { rows: rows.length, keys: 0, documents: 0, ranges: asked.length, sorts: 0 }
  for (const { find, filter, sort, hint, limit, projection } of asked) {
    const { executionStats, queryPlanner } = await database.command({
      explain: { find, filter, sort, hint, limit, projection },
      verbosity: 'executionStats',
    })
    cost.keys += executionStats.totalKeysExamined
    cost.documents += executionStats.totalDocsExamined
    const plan = JSON.stringify(queryPlanner.winningPlan)
    if (/"stage":"(SORT|COLLSCAN)"/.test(plan)) cost.sorts++
  }
  return { cost, rows }
}

const middle = async (read: Partial<ListPageQuery>) => {
  const { rows } = await costOf({ ...read, count: 400 })
  const { importance, at, id } = rows.at(-1)!
  return [importance ?? null, at, id] as ListPageQuery['after']
}

t.test('a page of 50 out of 20,000 reads 51 rows, wherever it is and in any order', async t => {
  const within = { from: begin, to: atOf(18_000) }
  for (const read of [
    {},
    { order: 'oldest_first' },
    { tier: 1 },
    { tier: 3 },
    within,
    { sort: 'importance' },
    { sort: 'importance', order: 'oldest_first' },
    { sort: 'importance', importance: 5 },
    { sort: 'importance', tier: 1 },
  ] as Partial<ListPageQuery>[]) {
    for (const after of [undefined, ...(read.tier === 3 ? [] : [await middle(read)])]) {
      const { cost } = await costOf({ ...read, after })
      const name = JSON.stringify({ ...read, deep: after !== undefined })
      t.equal(cost.rows, 51, name)
      t.equal(cost.sorts, 0, `${name} is read in order`)
      t.ok(cost.documents <= 52, `${name} documents: ${cost.documents}`)
      t.ok(cost.keys <= 60, `${name} keys: ${cost.keys}`)
    }
  }
})

t.test('neither does a page that begins and ends within one millisecond cost more', async t => {
  for (const order of ['newest_first', 'oldest_first'] as const) {
    const { rows } = await costOf({ order, from: shared, to: shared + 1, count: 1_000 })
    const { at, id } = rows.at(-1)!
    const { cost } = await costOf({ order, after: [null, at, id] })
    t.match(cost, { rows: 51, ranges: 2, sorts: 0 })
    t.ok(cost.keys <= 110, `${cost.keys} keys`)
  }
})

t.test('counting tiers reads no document, and nothing at all for the same revision', async t => {
  const counts = await countTiers(mongo, { ...scope, revision: 1 })
  t.same(counts, { 1: 19_000, 2: 900, 3: 100 })
  await mongo.memories.deleteMany({ vault: scope.vault, tier: 3 })
  t.same(await countTiers(mongo, { ...scope, revision: 1 }), counts)
  t.same(await countTiers(mongo, { ...scope, revision: 2 }), { ...counts, 3: 0 })
})
