import t from 'tap'
import { mintId } from '#shared/core/ids.ts'
import {
  readBilledUsage,
  insertStoredMemories,
  readVaultScope,
} from '#test/support/checks/stored-memories.ts'
import { clearSessionOf, raiseEpochOf, removeDocuments } from '#test/support/checks/alter.ts'
import { startService } from '#test/support/start/start-service.ts'
import type { TestClient } from '#test/support/start/api.ts'

const { backend, newClient } = await startService(t, { jobs: [] })
const { key, ...api } = await newClient()
const scope = await readVaultScope(backend, key)
const begin = Date.parse('2025-03-01T12:00:00Z')
const hour = 3_600_000

const inspect = (memory_id: unknown, client: TestClient = api) =>
  client.post('/v1/memory/inspect', { memory_id })

/** Two batches of raw memories, a reflection of each, and a high-level one of both. */
const [first, second, third] = [mintId(), mintId(), mintId()]
const raw = await insertStoredMemories(
  backend,
  scope,
  Array.from({ length: 5 }, (_, index) => ({
    text: `raw ${index}`,
    at: begin + index * hour,
    role: index % 2 ? ('assistant' as const) : ('user' as const),
    consolidated: true,
    consolidatedBy: [index < 3 ? first : second],
  })),
)
const [of3, alsoOf3, of2] = await insertStoredMemories(backend, scope, [
  {
    text: 'what happened first',
    tier: 2,
    importance: 7,
    coversFrom: begin,
    at: begin + 2 * hour,
    batch: first,
    sources: raw.slice(0, 3),
    consolidated: true,
    consolidatedBy: [third],
  },
  {
    text: 'and beside it',
    tier: 2,
    importance: 2,
    coversFrom: begin,
    at: begin + 2 * hour,
    batch: first,
    sources: raw.slice(0, 3),
  },
  {
    text: 'what happened then',
    tier: 2,
    importance: 5,
    coversFrom: begin + 3 * hour,
    at: begin + 4 * hour,
    batch: second,
    sources: raw.slice(3),
    consolidated: true,
    consolidatedBy: [third],
  },
])
const [high] = await insertStoredMemories(backend, scope, [
  {
    text: 'what it means',
    tier: 3,
    importance: 8,
    coversFrom: begin,
    at: begin + 4 * hour,
    batch: third,
    sources: [of3!, of2!],
  },
])

t.test('200: a reflection shows the raw memories it was made of, oldest first', async t => {
  const { status, body } = await inspect(of3)
  t.equal(status, 200)
  t.same(body, {
    memory_id: of3,
    tier: 2,
    batch_id: first,
    covers: { from: '2025-03-01T12:00:00.000Z', to: '2025-03-01T14:00:00.000Z' },
    sources: [0, 1, 2].map(index => ({
      id: raw[index],
      tier: 1,
      content: `raw ${index}`,
      role: index % 2 ? 'assistant' : 'user',
      importance: null,
      date: new Date(begin + index * hour).toISOString(),
    })),
    sources_total: 3,
    sources_deleted: 0,
    truncated: false,
    consolidated_into: [
      {
        id: high,
        tier: 3,
        content: 'what it means',
        importance: 8,
        date: '2025-03-01T16:00:00.000Z',
        covers: { from: '2025-03-01T12:00:00.000Z', to: '2025-03-01T16:00:00.000Z' },
      },
    ],
  })
})

t.test('200: a high-level reflection shows the reflections it was made of', async t => {
  const { body } = await inspect(high)
  t.match(body, { tier: 3, batch_id: third, sources_total: 2, consolidated_into: [] })
  t.match(body.sources, [
    { id: of3, tier: 2, importance: 7 },
    { id: of2, tier: 2, importance: 5 },
  ])
})

t.test('200: a raw memory shows every reflection built from it', async t => {
  const { body } = await inspect(raw[0])
  t.match(body, { tier: 1, batch_id: null, covers: null, sources: [], sources_total: 0 })
  t.same(body.consolidated_into.map(({ id }: { id: string }) => id).sort(), [of3, alsoOf3].sort())
  t.match((await inspect(raw[4])).body.consolidated_into, [{ id: of2, importance: 5 }])
})

t.test('200: ids are read in any case', async t => {
  t.match((await inspect(of3!.toUpperCase())).body, { memory_id: of3, sources_total: 3 })
})

t.test('200: deleted sources are counted, not missed', async t => {
  const batch = mintId()
  const sources = await insertStoredMemories(
    backend,
    scope,
    [0, 1, 2].map(index => ({ text: `gone ${index}`, at: begin + index })),
  )
  const [reflection] = await insertStoredMemories(backend, scope, [
    {
      text: 'of gone ones',
      tier: 2,
      importance: 1,
      coversFrom: begin,
      at: begin + 2,
      batch,
      sources,
    },
  ])
  await removeDocuments(backend, scope.vault, [sources[1]!])
  const { body } = await inspect(reflection)
  t.match(body, { sources_total: 3, sources_deleted: 1, truncated: false })
  t.same(
    body.sources.map(({ id }: { id: string }) => id),
    [sources[0], sources[2]],
  )
  await removeDocuments(backend, scope.vault, sources)
  t.match((await inspect(reflection)).body, { sources: [], sources_total: 3, sources_deleted: 3 })
})

t.test('200: at most 500 sources, and gaps are counted beyond them', async t => {
  const batch = mintId()
  const sources = await insertStoredMemories(
    backend,
    scope,
    Array.from({ length: 4_600 }, (_, index) => ({ text: `many ${index}`, at: begin + index })),
    { vectors: false },
  )
  const [reflection, exact] = await insertStoredMemories(backend, scope, [
    { text: 'of many', tier: 2, importance: 1, coversFrom: begin, at: begin + 9, batch, sources },
    {
      text: 'of 500',
      tier: 2,
      importance: 1,
      coversFrom: begin,
      at: begin + 9,
      batch,
      sources: sources.slice(10, 511),
    },
  ])
  const gone = [sources[3]!, sources[499]!, sources[500]!, sources[4_599]!]
  await removeDocuments(backend, scope.vault, gone)
  const { body } = await inspect(reflection)
  t.match(body, { sources_total: 4_600, sources_deleted: 4, truncated: true })
  const left = sources.filter(id => !gone.includes(id)).slice(0, 500)
  t.same(
    body.sources.map(({ id }: { id: string }) => id),
    left,
  )
  const whole = (await inspect(exact)).body
  t.match(whole, { sources_total: 501, sources_deleted: 2, truncated: false })
  t.equal(whole.sources.length, 499)
})

t.test('200: a session memory can be inspected, until its session is cleared', async t => {
  const [id] = await insertStoredMemories(backend, scope, [
    { text: 'in a session', at: begin, session: 'trip' },
  ])
  t.match((await inspect(id)).body, { tier: 1, sources: [], consolidated_into: [] })
  await clearSessionOf(backend, scope.vault, 'trip')
  t.equal((await inspect(id)).status, 404)
})

t.test('200: bills the tokens of the sources, and nothing where there are none', async t => {
  const before = (await readBilledUsage(backend, scope, 'inspect')).length
  await inspect(raw[0])
  t.equal((await readBilledUsage(backend, scope, 'inspect')).length, before)
  await inspect(high)
  const bills = await readBilledUsage(backend, scope, 'inspect')
  const documents = await backend.mongo.memories
    .find({ vault: scope.vault, _id: { $in: [of3!, of2!] } })
    .toArray()
  t.equal(
    bills.at(-1)!.tokens,
    documents.reduce((sum, { tokens }) => sum + tokens, 0),
  )
})

t.test('404: unknown and foreign ids look alike', async t => {
  const stranger = await newClient()
  const unknown = await inspect(mintId())
  t.equal(unknown.status, 404)
  const foreign = await inspect(high, stranger)
  t.same([foreign.status, foreign.body], [404, unknown.body])
})

t.test('404: a cleared vault remembers nothing', async t => {
  const client = await newClient()
  const { scope: own } = await client.caller()
  const [id] = await insertStoredMemories(backend, own, [{ text: 'soon gone', at: begin }])
  t.equal((await inspect(id, client)).status, 200)
  await raiseEpochOf(backend, own.vault)
  t.equal((await inspect(id, client)).status, 404)
})
