import type { Document } from 'mongodb'
import t, { type Test } from 'tap'
import type { Backend } from '#shared/backend.ts'
import { wholeOrPartialIndex } from '#shared/vault/read/search/searchable-index.ts'
import { createMetricsCollector } from '#shared/operations/collect-metrics.ts'
import { toBinaryVector } from '#shared/storage/mongo/documents.ts'
import type { TestClient } from '#test/support/start/api.ts'
import {
  insertMemories,
  resolveCaller,
  type MemoryFixture,
} from '#test/support/start/insert-memories.ts'
import {
  serverError,
  type CommandOutcome,
  type MongoDouble,
} from '#test/support/doubles/mongo-double.ts'
import {
  openSearchDeployment,
  vectorSearches,
  type SearchDeployment,
} from '#test/support/start/search-deployment.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

const day = 86_400_000
const fillers = (count: number): MemoryFixture[] =>
  Array.from({ length: count }, (_, n) => ({
    text: `The report number ${n} was filed under shelf ${n % 97}.`,
    at: Date.UTC(2025, 0, 1) + n * 60_000,
  }))

const isVectorSearch = (command: Document): boolean =>
  vectorSearches({ commands: [command] }).length > 0

const searched = async (api: TestClient, query: string, limit = 5): Promise<string[]> => {
  const { status, body } = await api.post('/v1/memory/search', { query, limit })
  t.equal(status, 200, JSON.stringify(body).slice(0, 200))
  return body.memories.map(({ content }: { content: string }) => content)
}

/** Holds up reading whole vaults until it is called. */
function holdLoads(double: MongoDouble) {
  const { rule } = double
  const gate = Promise.withResolvers<void>()
  let loads = 0
  double.rule = async (name, command): Promise<CommandOutcome> => {
    if (name === 'find' && !command['filter']._id && !command['filter'].text) {
      loads++
      await gate.promise
    }
    return rule(name, command)
  }
  return { open: gate.resolve, loads: () => loads }
}

t.test('a vault is searched by its search index while it is loaded, once for all', async t => {
  const { backend, key, api, double, settle } = await openSearchDeployment(t)
  const fox = 'The fox sleeps in the greenhouse.'
  const [foxId, badgerId] = await insertMemories(backend, key, [
    { text: fox, at: Date.UTC(2025, 5, 1) },
    { text: 'The badger sleeps in the cellar.', at: Date.UTC(2025, 5, 2) },
    ...fillers(1_300),
  ])
  await settle()
  const held = holdLoads(double)

  const found = await Promise.all(
    Array.from({ length: 5 }, () => searched(api, 'Where does the fox sleep?')),
  )
  const firsts = found.map(([first]) => first)
  t.same(
    firsts,
    Array.from({ length: 5 }, () => fox),
  )
  t.equal(held.loads(), 1, 'one load for all')
  t.ok(vectorSearches(double).length >= 5)
  t.match(backend.vaultIndexes.loading, { indexes: 1, rows: 0, expected: 1_302 })
  const { text } = await createMetricsCollector(backend, async () => 0)()
  t.match(text, /vault_index_loading_rows\{state="expected"\} 1302/)

  t.comment('what is newer than the search index is found, and what is gone is not')
  const said = { messages: [{ role: 'user', content: 'The heron nests on the chimney.' }] }
  await insertMemories(backend, key, [{ text: said.messages[0]!.content }])
  t.match(await searched(api, 'Where does the heron nest?'), ['The heron nests on the chimney.'])
  const edited = 'The fox moved to the lighthouse.'
  t.equal((await api.post('/v1/memory/edit', { memory_id: foxId, text: edited })).status, 200)
  t.match(await searched(api, 'Who moved to the lighthouse?'), [edited])
  t.equal((await api.post('/v1/memory/delete-ids', { ids: [badgerId] })).status, 200)
  t.notOk((await searched(api, 'Where does the badger sleep?')).some(text => /badger/.test(text)))
  t.equal(held.loads(), 1)

  held.open()
  await waitUntil('it is loaded', () => backend.vaultIndexes.count === 1)
  await searched(api, 'heron')
  const before = vectorSearches(double).length
  t.match(await searched(api, 'Who moved to the lighthouse?'), [edited])
  t.equal(vectorSearches(double).length, before, 'from memory now')
})

t.test('without an index to ask, or while it fails, the search waits for the load', async t => {
  const { backend, key, api, double, settle } = await openSearchDeployment(t)
  await insertMemories(backend, key, [{ text: 'The fox sleeps.' }, ...fillers(1_100)])
  await settle()
  const { rule } = double
  double.rule = (name, command) =>
    isVectorSearch(command) ? serverError(489, 'SearchOverloaded') : rule(name, command)
  t.match(await searched(api, 'Where does the fox sleep?'), ['The fox sleeps.'])
  t.equal(backend.vaultIndexes.count, 1)
})

t.test('a load that takes too long is a 503, goes on, and then answers', async t => {
  const { backend, key, api, double } = await openSearchDeployment(t)
  await insertMemories(backend, key, [{ text: 'The fox sleeps.' }, ...fillers(1_100)])
  const { scope } = await resolveCaller(backend, key)
  const { space, dimension } = await backend.embedders.get()
  const held = holdLoads(double)
  const ref = { scope, session: null, space, dimension }
  const nearest = { hasIndex: () => false }
  const load = wholeOrPartialIndex({ ...backend, nearest } as never, ref, async () => null, 20)
  await t.rejects(load, { reason: 'unavailable', message: /still being loaded/ })
  await waitUntil('it is being read', () => held.loads() === 1)
  held.open()
  await waitUntil('it is loaded', () => backend.vaultIndexes.count === 1)
  t.match(await searched(api, 'Where does the fox sleep?'), ['The fox sleeps.'])
  t.equal(backend.vaultIndexes.stats().loads, 1, 'the first load')
})

/** A vault beyond the budget whose needles have vectors that are far from every question. */
async function buryNeedles(backend: Backend, key: string): Promise<void> {
  const ids = await insertMemories(backend, key, [
    { text: 'The router of the annex has the serial W-38271K.', at: Date.UTC(2024, 1, 1) },
    { text: 'Ottokar signed for the parcel.', at: Date.UTC(2024, 1, 2) },
    { text: 'We watched the eclipse from the roof.', at: Date.UTC(2021, 2, 15, 12) },
    ...fillers(1_500),
  ])
  const { scope } = await resolveCaller(backend, key)
  const { space, embedTexts } = await backend.embedders.get()
  const [question] = await embedTexts(['report number shelf filed'])
  const far = toBinaryVector(question!.map(value => -value))
  await backend.mongo.memories.updateMany(
    { vault: scope.vault, _id: { $in: ids.slice(0, 3) } },
    { $set: { [`vectors.${space}`]: far } },
  )
}

/** Exact words and named times are found in a vault beyond the budget. */
async function findNeedles(t: Test, { api, double }: SearchDeployment): Promise<void> {
  t.match(await searched(api, 'Which report number is W-38271K?'), [/W-38271K/])
  t.match(await searched(api, 'Which report did Ottokar sign?'), [/Ottokar/])
  const inMarch = await searched(api, 'What happened on 15 March 2021?', 50)
  t.ok(inMarch.some(text => /eclipse/.test(text)))
  const { body } = await api.post('/v1/memory/date-search', {
    from: new Date(Date.UTC(2024, 0, 1)).toISOString(),
    to: new Date(Date.UTC(2024, 0, 1) + 60 * day).toISOString(),
    query: 'serial W-38271K',
  })
  t.match(body.memories?.[0] ?? body, { content: /W-38271K/ })
  t.ok(vectorSearches(double).length > 0)
}

const beyond = await openSearchDeployment(t, { INDEX_CACHE_MB: '1' })
await buryNeedles(beyond.backend, beyond.key)
await beyond.settle()

t.test('beyond the budget exact words and named times are found by its search index', t =>
  findNeedles(t, beyond),
)

t.test('an index that has too much to do is a 503, never a scan of the vault', async t => {
  const { api, double } = beyond
  const { rule } = double
  const cases: [Document, RegExp][] = [
    [serverError(489, 'SearchOverloaded'), /too many searches/],
    [{ ...serverError(8, 'UnknownError'), errmsg: 'query was rejected' }, /too many searches/],
    [serverError(8, 'UnknownError'), /out of reach/],
    [serverError(10107, 'NotWritablePrimary'), /out of reach/],
  ]
  for (const [error, message] of cases) {
    double.rule = (name, command) => (isVectorSearch(command) ? error : rule(name, command))
    double.commands.length = 0
    const answer = await api.post('/v1/memory/search', { query: 'shelf', limit: 3 })
    t.equal(answer.status, 503, `${error['code']} ${error['errmsg']}`)
    t.match(answer.body.error, message)
    t.match(answer.headers.get('retry-after'), /^\d+$/)
    const scans = double.commands.filter(command => 'find' in command)
    t.equal(scans.length, 0, 'nothing else is read')
  }
  double.rule = rule
  t.equal((await searched(api, 'shelf', 3)).length, 3)
})

t.test('beyond the budget exact words and named times are found by a scan', t => {
  beyond.search.dropIndexes()
  return findNeedles(t, beyond)
})

t.test('no right to search, and no search at all, are answered by a scan', async t => {
  const { api, double } = beyond
  const { rule } = double
  for (const code of [13, 31_082]) {
    double.rule = (name, command) =>
      isVectorSearch(command) ? serverError(code, 'No') : rule(name, command)
    t.equal((await searched(api, 'shelf', 3)).length, 3, String(code))
  }
  double.commands.length = 0
  await searched(api, 'shelf', 3)
  t.equal(vectorSearches(double).length, 0, 'a deployment without search is not asked each time')
})
