import '#test/setup/env.ts'
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { MongoClient } from 'mongodb'
import t from 'tap'
import { predicateOf, testsOf } from '#shared/domain/condition.ts'
import { conditionOf } from '#shared/domain/filter.ts'
import type { Metadata } from '#shared/domain/metadata.ts'
import type { Memory } from '#shared/domain/memory.ts'
import { originOf } from '#shared/domain/origin.ts'
import { createVaultIndex } from '#shared/search/index/vault-index.ts'
import { termsOf } from '#shared/search/words/index-terms.ts'
import { conditionFilter, isIndexed } from '#shared/storage/mongo/condition-filter.ts'
import { openMongo } from '#shared/storage/mongo/connect.ts'
import { createIndexes } from '#shared/storage/mongo/indexes.ts'
import { MemoryStore } from '#shared/vault/base/memories.mongo.ts'
import { memoryPredicate } from '#test/support/checks/memory-predicate.ts'

const uri = new URL(process.env['MONGODB_URI']!)
uri.pathname = `/filters-${randomUUID()}`
const mongo = await openMongo(uri.href)
const client = await MongoClient.connect(uri.href)
t.teardown(async () => {
  await client.db(mongo.memories.dbName).dropDatabase()
  await client.close()
  await mongo.close()
})
await createIndexes(mongo)

type Row = Memory & { session: string | null }

const space = 'space_1'
const vector = Float32Array.of(1, 0, 0, 0, 0, 0, 0, 0)
const day = (text: string) => Date.parse(`${text}T12:00:00Z`)
const row = (fields: Partial<Row>): Row => ({
  id: randomUUID(),
  tier: 1,
  role: 'user',
  text: randomUUID(),
  at: day('2026-03-01'),
  tokens: 1,
  session: null,
  ...fields,
})
const noted = (metadata: Metadata, fields: Partial<Row> = {}): Row => row({ metadata, ...fields })

/** By a name, memories that differ in what filters ask for. */
const named: Record<string, Row> = {
  bare: row({}),
  one: noted({ n: 1, s: 'abc', due: '2026-05-01' }),
  ten: noted({ n: 10, s: 'abc d', due: '2026-11-20' }),
  tenth: noted({ n: -0.1, s: 'abc!', flag: true }),
  tiny: noted({ n: 1e-7, s: '', flag: false }),
  text: noted({ n: '10', s: 'ab"c' }),
  odd: noted({ s: 'ä\\"', 'a.b': 1 }),
  other: noted({ a_b: 1, aXb: 1, 'n.x': 5, xn: 5 }),
  astral: noted({ s: '😀' }),
  private: noted({ s: '\uffee' }),
  model: row({ role: 'assistant', at: day('2026-04-01'), speaker: 'Ada' }),
  system: row({ role: 'system', at: day('2026-05-01') }),
  hook: noted({ origin: 'program' }, { role: 'user' }),
  feigned: noted({ origin: 'person' }, { role: 'assistant' }),
  session: row({ session: 'ada', speaker: 'Ben', at: day('2026-02-28') }),
  minor: row({ tier: 2, importance: 3, role: 'assistant' }),
  major: row({ tier: 3, importance: 9, role: 'assistant', at: day('2026-06-01') }),
}
const all = Object.keys(named)
const without = (...names: string[]) => all.filter(name => !names.includes(name))

const cases: [filter: object, expected: string[]][] = [
  [{ metadata: { n: 10 } }, ['ten']],
  [{ metadata: { n: '10' } }, ['text']],
  [{ metadata: { n: { gt: 1 } } }, ['ten']],
  [{ metadata: { n: { gte: 1, lt: 10 } } }, ['one']],
  [{ metadata: { n: { lte: 0.0000001 } } }, ['tenth', 'tiny']],
  [{ metadata: { n: { lt: '2' } } }, ['text']],
  [{ metadata: { n: { ne: 10 } } }, without('ten')],
  [{ metadata: { n: { nin: [1, 10] } } }, without('one', 'ten')],
  [{ metadata: { n: { exists: true, nin: [1, 10] } } }, ['tenth', 'tiny', 'text']],
  [{ metadata: { n: { exists: false } } }, without('one', 'ten', 'tenth', 'tiny', 'text')],
  [{ not: { metadata: { n: { gt: 1 } } } }, without('ten')],
  [{ metadata: { s: { gt: 'abc' } } }, ['ten', 'tenth', 'odd', 'astral', 'private']],
  [{ metadata: { s: { lt: 'abc d' } } }, ['one', 'tiny', 'text']],
  [{ metadata: { s: { gt: '\uffee' } } }, ['astral']],
  [{ metadata: { s: { gte: '$s', lt: 'abc' } } }, ['text']],
  [{ metadata: { s: 'ä\\"' } }, ['odd']],
  [{ metadata: { s: '' } }, ['tiny']],
  [{ metadata: { due: { lt: '2026-06-01' } } }, ['one']],
  [{ metadata: { flag: true } }, ['tenth']],
  [{ metadata: { flag: { exists: true } } }, ['tenth', 'tiny']],
  [{ metadata: { flag: { gte: 0 } } }, []],
  [{ metadata: { 'a.b': { exists: true } } }, ['odd']],
  [{ metadata: { 'a.b': { lte: 1 } } }, ['odd']],
  [{ metadata: { origin: 'program' } }, ['hook', 'system']],
  [{ metadata: { origin: 'person' } }, without('model', 'system', 'hook', 'minor', 'major')],
  [{ origin: 'person' }, without('model', 'system', 'hook', 'feigned', 'minor', 'major')],
  [{ origin: { in: ['program', 'reflection'] } }, ['system', 'hook', 'minor', 'major']],
  [{ origin: { ne: 'reflection' } }, without('minor', 'major')],
  [{ role: 'system' }, ['system']],
  [{ role: { nin: ['user', 'assistant'] } }, ['system']],
  [{ tier: { gte: 2 } }, ['minor', 'major']],
  [{ importance: { lt: 4 } }, ['minor']],
  [{ not: { importance: { lt: 4 } } }, without('minor')],
  [{ importance: { exists: true } }, ['minor', 'major']],
  [{ name: 'Ada' }, ['model']],
  [{ name: { exists: true, ne: 'Ada' } }, ['session']],
  [{ session: { exists: false } }, without('session')],
  [{ session: 'ada' }, ['session']],
  [{ session: { ne: 'ada' } }, without('session')],
  [{ time: { lt: '2026-03-01' } }, ['session']],
  [{ time: { lte: '2026-03-01' } }, without('model', 'system', 'major')],
  [{ time: { gt: '2026-04-01' } }, ['system', 'major']],
  [{ time: { gte: '2026-04-01T12:00:00Z', lt: 1_780_272_000_000 } }, ['model', 'system']],
  [{ time: { gt: '2026-04-01T12:00:00Z', lt: '2026-06-01' } }, ['system']],
  [{ and: [{ or: [{ tier: 2 }, { role: 'system' }] }, { not: { importance: 3 } }] }, ['system']],
  [{ tier: 1, not: { or: [{ role: 'user' }, { name: 'Ada' }] } }, ['system', 'feigned']],
]

/** The rows that each way of asking finds. */
async function foundBy(rows: readonly Row[], filter: object) {
  const condition = conditionOf({ filter })!
  const found = await mongo.memories
    .find(
      { vault: rows === namedRows ? 'named' : 'random', ...conditionFilter(condition) },
      { projection: { _id: 1 } },
    )
    .toArray()
  const inMemory = rows.filter(one => memoryPredicate(condition, one.session)(one))
  const inIndex = [null, 'ada'].flatMap(session => {
    const { byTier } = indexOf(rows, session)
    return ([1, 2, 3] as const).flatMap(tier => {
      const meets = byTier[tier].matcher(condition, session)
      return Array.from({ length: byTier[tier].count }, (_, n) => n)
        .filter(meets)
        .map(n => byTier[tier].memory(n).id)
    })
  })
  return {
    database: found.map(({ _id }) => _id).toSorted(),
    memory: inMemory.map(({ id }) => id).toSorted(),
    index: inIndex.toSorted(),
  }
}

const indexes = new Map<readonly Row[], Map<string | null, ReturnType<typeof createVaultIndex>>>()
function indexOf(rows: readonly Row[], session: string | null) {
  const known = indexes.get(rows) ?? new Map()
  indexes.set(rows, known)
  if (!known.has(session)) {
    const index = createVaultIndex({ dimension: 8, termsOf })
    index.put(rows.filter(one => one.session === session).map(one => ({ ...one, vector })))
    known.set(session, index)
  }
  return known.get(session)!
}

const store = (rows: readonly Row[], vault: string) =>
  new MemoryStore(mongo).add(
    rows.map(one => ({ ...one, vault, epoch: 0, sessionEpoch: 0, operation: 'op', vector })),
    space,
  )

const namedRows = Object.values(named)
await store(namedRows, 'named')

t.test('database, index and memory find what a filter asks for', async t => {
  for (const [filter, expected] of cases) {
    const ids = expected.map(name => named[name]!.id).toSorted()
    const same = { database: ids, memory: ids, index: ids }
    const names = (found: Record<string, string[]>) =>
      Object.fromEntries(
        Object.entries(found).map(([way, list]) => [
          way,
          list.map(id => all.find(name => named[name]!.id === id)).toSorted(),
        ]),
      )
    t.same(names(await foundBy(namedRows, filter)), names(same), JSON.stringify(filter))
  }
})

t.test('the filter of an origin finds what rows show', async t => {
  for (const origin of ['person', 'model', 'program', 'import', 'seed', 'reflection']) {
    const shown = namedRows.filter(one => originOf(one) === origin).map(({ id }) => id)
    t.same((await foundBy(namedRows, { origin })).memory, shown.toSorted(), origin)
  }
})

const numbers = fc.constantFrom(0, 1, 2, -1, 1.5, 1e-7, 2 ** 53 - 1)
const texts = fc.constantFrom('', 'a', 'ab', 'a b', 'a!', '$a', 'a"', 'b\\', '1', 'é', '2026-05-01')
const values = fc.oneof(numbers, texts, fc.boolean())
const keys = fc.constantFrom('a', 'b', 'a.b')
const roles = fc.constantFrom('user', 'assistant', 'system')
const times = fc.constantFrom('2026-01-01', '2026-01-02', '2026-01-02T00:00:00.001Z')
const randomRows = fc.sample(
  fc
    .record(
      {
        tier: fc.constantFrom(1, 2, 3),
        role: roles,
        at: times.map(time => Date.parse(time)),
        session: fc.constantFrom(null, 'ada'),
        metadata: fc.dictionary(keys, values, { minKeys: 1 }),
        importance: fc.integer({ min: 1, max: 10 }),
        speaker: fc.constantFrom('Ada', 'Ben'),
      },
      { requiredKeys: ['tier', 'role', 'at', 'session'] },
    )
    .map(fields => row(fields as Partial<Row>)),
  { numRuns: 300, seed: 5 },
)

const some = <T>(of: fc.Arbitrary<T>) => fc.array(of, { minLength: 1, maxLength: 3 })
const operators = <T>(
  of: fc.Arbitrary<T>,
  ordered: fc.Arbitrary<unknown> | undefined,
  exists = true,
) =>
  fc
    .record(
      {
        eq: of,
        ne: of,
        in: some(of),
        nin: some(of),
        ...(ordered && { gt: ordered, gte: ordered, lt: ordered, lte: ordered }),
        ...(exists && { exists: fc.boolean() }),
      },
      { requiredKeys: [] },
    )
    .filter(one => Object.keys(one).length > 0)
const tiers = fc.integer({ min: 1, max: 3 })
const tests = fc.oneof(
  fc
    .tuple(keys, fc.oneof(values, operators(values, fc.oneof(numbers, texts))))
    .map(([key, wanted]) => ({ metadata: { [key]: wanted } })),
  operators(tiers, tiers).map(tier => ({ tier })),
  operators(roles, undefined, false).map(role => ({ role })),
  operators(fc.constantFrom('Ada', 'Ben'), undefined).map(name => ({ name })),
  operators(fc.constantFrom('ada', 'bob'), undefined).map(session => ({ session })),
  fc.integer({ min: 1, max: 10 }).map(n => ({ importance: { gte: n } })),
  fc
    .tuple(fc.constantFrom('gt', 'gte', 'lt', 'lte'), times)
    .map(([op, time]) => ({ time: { [op]: time } })),
)
const { filter: filters } = fc.letrec<{ filter: object }>(tie => ({
  filter: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    tests,
    some(tie('filter')).map(and => ({ and })),
    some(tie('filter')).map(or => ({ or })),
    tie('filter').map(not => ({ not })),
  ),
}))

/** A filter has at most 32 tests, each of which has a name. */
const hasFewTests = (filter: object) => JSON.stringify(filter).split('":').length <= 33

t.test('any filter finds the same in the database, an index and memory', async t => {
  await store(randomRows, 'random')
  let found = 0
  await fc.assert(
    fc.asyncProperty(filters.filter(hasFewTests), async filter => {
      const { database, memory, index } = await foundBy(randomRows, filter)
      found += memory.length
      return String(database) === String(memory) && String(index) === String(memory)
    }),
    { numRuns: 300, seed: 23 },
  )
  t.ok(found > 3_000, `${found} rows were found`)
})

t.test(
  'a search index answers tests of fields that it has, in operators that it knows',
  async t => {
    const isAnswered = (filter: object) => testsOf(conditionOf({ filter })!).every(isIndexed)
    const indexed = { tier: { ne: 1 }, time: { gt: '2026-01-01' }, importance: { lt: 4 } }
    t.ok(isAnswered({ ...indexed, session: 'ada', not: { metadata: { a: { nin: [1] } } } }))
    for (const filter of [
      { role: 'user' },
      { origin: 'person' },
      { name: 'Ada' },
      { metadata: { a: { gt: 1 } } },
      { metadata: { a: { exists: true } } },
      { or: [{ tier: 1 }, { importance: { exists: true } }] },
    ])
      t.notOk(isAnswered(filter), JSON.stringify(filter))
  },
)

t.test('a predicate asks no further test than it needs', async t => {
  const asked: string[] = []
  const holds = predicateOf<void>(
    conditionOf({ filter: { or: [{ tier: 1 }, { tier: 2 }] } })!,
    test => () => {
      asked.push(JSON.stringify(test))
      return true
    },
  )
  t.equal(holds(), true)
  t.equal(asked.length, 1)
})
