import { MongoClient, type CommandStartedEvent, type Document } from 'mongodb'
import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import type { VaultScope } from '#shared/domain/memory.ts'
import { commandListeners } from '#shared/storage/mongo/connect.ts'
import { sessionTotals } from '#shared/vault/read/lists/counts.mongo.ts'
import type { Query } from '#shared/storage/postgres/connect.ts'
import { storedSessions, type SessionPosition } from '#shared/vault/read/lists/sessions.postgres.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { insertStoredMemories } from '#test/support/checks/stored-memories.ts'
import { insertVault } from '#test/support/checks/alter.ts'

const asked: Document[] = []
commandListeners.push(({ commandName, command }: CommandStartedEvent) => {
  if (commandName === 'aggregate') asked.push(command)
})
const backend = await createTestBackend(t)
const { mongo, postgres } = backend
// Explaining is a command of its own, through a client that nobody watches.
const client = new MongoClient(backend.config.mongodbUri)
const database = client.db(mongo.memories.dbName)
const scope: VaultScope = { vault: mintId(), epoch: 1, revision: 0 }
t.teardown(() => client.close())

const begin = Date.parse('2026-01-01T00:00:00Z')
await insertVault(backend, scope.vault)
// 200 sessions of 50, and a core vault of 10,000 that nobody asked for.
await insertStoredMemories(
  backend,
  scope,
  Array.from({ length: 20_000 }, (_, n) => ({
    text: `memory ${n}`,
    at: begin + n * 1_000,
    tokens: 3,
    ...(n % 2 === 0 && { session: `chat ${(n / 2) % 200}` }),
  })),
  { vectors: false },
)

/** What all commands of a look at some sessions cost together. */
async function costOf(sessions: { session: string; epoch: number }[], now = Date.now()) {
  asked.length = 0
  const sums = await sessionTotals(mongo, scope, sessions, now)
  const cost = { keys: 0, documents: 0 }
  for (const { aggregate, pipeline, hint } of asked) {
    const explained = await database.command({
      explain: { aggregate, pipeline, hint, cursor: {} },
      verbosity: 'executionStats',
    })
    const { executionStats } = explained.stages?.[0].$cursor ?? explained
    cost.keys += executionStats.totalKeysExamined
    cost.documents += executionStats.totalDocsExamined
  }
  return { sums, cost }
}

const some = Array.from({ length: 20 }, (_, n) => ({ session: `chat ${n}`, epoch: 0 }))

t.test('counts go by the index of these sessions alone, and read no memory', async t => {
  const { sums, cost } = await costOf(some)
  t.equal(sums.size, 20)
  t.same(sums.get('chat 3'), {
    memories: 50,
    first: new Date(begin + 6_000),
    last: new Date(begin + (6 + 49 * 400) * 1_000),
  })
  t.equal(cost.documents, 0)
  t.ok(cost.keys < 20 * 50 + 60, `${cost.keys} keys`)
})

t.test('of a session that was cleared before, what came after it', async t => {
  await mongo.memories.updateMany(
    { vault: scope.vault, session: 'chat 0', at: { $gte: new Date(begin + 4_000_000) } },
    { $set: { session_epoch: 1 } },
  )
  const { sums, cost } = await costOf([{ session: 'chat 0', epoch: 1 }, some[1]!])
  t.equal(sums.get('chat 0')!.memories, 40)
  t.same(sums.get('chat 0')!.first, new Date(begin + 4_000_000))
  t.equal(sums.get('chat 1')!.memories, 50)
  t.equal(cost.documents, 50, 'it alone is looked at')
  t.notOk((await sessionTotals(mongo, scope, [{ session: 'chat 0', epoch: 2 }], 0)).has('chat 0'))
})

t.test('what is over does not count, and a session of nothing else is not there', async t => {
  const end = new Date(begin)
  const over = (session: string, from = 0) =>
    mongo.memories.updateMany(
      { vault: scope.vault, session, at: { $gte: new Date(begin + from) } },
      { $set: { expires_at: end } },
    )
  await over('chat 5')
  await over('chat 6', 4_000_000)
  const { sums, cost } = await costOf(some.slice(4, 8))
  t.same([...sums.keys()].toSorted(), ['chat 4', 'chat 6', 'chat 7'])
  t.equal(sums.get('chat 6')!.memories, 10)
  t.ok(cost.documents <= 200, `${cost.documents} documents`)
  t.equal((await costOf(some.slice(5, 6), begin - 1)).sums.get('chat 5')!.memories, 50)
})

t.test('a page of the kept names is a range of their index, wherever it begins', async t => {
  const explained = async (before: SessionPosition | undefined) => {
    let plan = ''
    const explaining: Query = async (text, values) => {
      await postgres.transaction(async tx => {
        // The plan that a statement ends up with when it has run often.
        await tx.query('set local plan_cache_mode = force_generic_plan')
        await tx.query(`prepare sessions_page as ${text}`)
        const given = values!.map(value =>
          value === null ? 'null' : `'${String(value as string | number)}'`,
        )
        const { rows } = await tx.query<{ 'QUERY PLAN': string }>(
          `explain (analyze, timing off) execute sessions_page(${given.join()})`,
        )
        await tx.query('deallocate sessions_page')
        plan = rows.map(row => row['QUERY PLAN']).join('\n')
      })
      return { rows: [], rowCount: 0 }
    }
    await storedSessions(explaining, scope.vault, { before, limit: 20 })
    return plan
  }
  const rows = await storedSessions(postgres.query, scope.vault, { before: undefined, limit: 150 })
  const { position: storedAt, session } = rows.at(-1)!
  for (const before of [undefined, { storedAt, session }]) {
    const plan = await explained(before)
    t.match(plan, /sessions_stored/)
    t.match(plan, /rows=20\b.*loops=1/)
    t.notMatch(plan, /Removed by Filter|Sort|Seq Scan/)
  }
})
