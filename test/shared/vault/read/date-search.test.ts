import fc from 'fast-check'
import t from 'tap'
import { searchDates } from '#shared/vault/read/lists/date-search.ts'
import { buildKey } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { dateQuestion, readDatePages } from '#test/support/samples/date-pages.ts'
import {
  insertStoredMemories,
  readVaultScope,
  type StoredMemoryFixture,
} from '#test/support/checks/stored-memories.ts'

const backend = await createTestBackend(t)
const begin = Date.parse('2025-03-01T12:00:00.000Z')
const iso = (at: number): string => new Date(at).toISOString()

/** Times of a few milliseconds, so that many rows share one; tokens of which few fill a page. */
const row = fc.record({
  at: fc.integer({ min: 0, max: 9 }),
  length: fc.integer({ min: 0, max: 9 }),
  tier: fc.constantFrom(1 as const, 1 as const, 2 as const, 3 as const),
  tokens: fc.integer({ min: 1, max: 1_200 }),
})

/** A caller with a new vault. */
const newCaller = async () => {
  const scope = await readVaultScope(backend, await buildKey(backend))
  return { scope, memberScope: null }
}

const vaults = fc.array(row, { minLength: 5, maxLength: 25 })
const bounds = fc.tuple(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 9 }))

t.test('pages of a window are all its rows, each once, in order', async t => {
  let pagesSeen = 0
  await fc.assert(
    fc.asyncProperty(vaults, bounds, fc.boolean(), async (rows, ends, oldestFirst) => {
      const caller = await newCaller()
      const [low, high] = ends.toSorted((a, b) => a - b) as [number, number]
      const planted = rows.map(({ at, length, tier, tokens }, index): StoredMemoryFixture => ({
        text: `row ${index}`,
        at: begin + at,
        tokens,
        ...(tier > 1 && { tier, importance: 5, coversFrom: begin + at - length }),
      }))
      const ids = await insertStoredMemories(backend, caller.scope, planted, { vectors: false })
      const expected = ids.filter((_, index) => {
        const { at, coversFrom = at } = planted[index]!
        return coversFrom <= begin + high && at >= begin + low
      })
      const order = oldestFirst ? 'oldest_first' : 'newest_first'
      const span = { from: iso(begin + low), to: iso(begin + high) }
      const found = await readDatePages(backend, caller, span, { order })
      pagesSeen += found.length
      const flat = found.flat()
      t.same(flat.map(({ id }) => id).sort(), expected.toSorted())
      const times = flat.map(({ position }) => position.at)
      const inOrder = times.toSorted((a, b) => (oldestFirst ? a - b : b - a))
      t.same(times, inOrder)
      for (const page of found) {
        const end = page.at(-1)!.position.at
        const before = page.filter(({ position }) => position.at !== end)
        const tokens = before.reduce((sum, { tokens: each }) => sum + each, 0)
        t.ok(tokens <= 1_000, `${tokens} tokens before the last millisecond of a page`)
      }
      // A stored order does not depend on where pages end.
      const all = { order, maxTokens: 200_000 } as const
      const whole = await readDatePages(backend, caller, span, all)
      t.same(
        flat.map(({ id }) => id),
        whole.flat().map(({ id }) => id),
      )
      await backend.mongo.memories.deleteMany({ vault: caller.scope.vault })
    }),
    { numRuns: 60 },
  )
  t.ok(pagesSeen > 120, `${pagesSeen} pages`)
})

t.test('rows that come meanwhile neither repeat others nor hide them', async t => {
  for (const order of ['newest_first', 'oldest_first'] as const) {
    const caller = await newCaller()
    const many = Array.from({ length: 40 }, (_, index) => ({
      text: `row ${index}`,
      at: begin + Math.floor(index / 15),
      tokens: 240,
    }))
    const ids = await insertStoredMemories(backend, caller.scope, many, { vectors: false })
    const span = { from: '2025-03-01', to: '2025-03-02' }
    const pages = await readDatePages(backend, caller, span, { order }, () =>
      insertStoredMemories(backend, caller.scope, many.slice(7, 9), { vectors: false }),
    )
    const found = pages.flat().map(({ id }) => id)
    t.equal(new Set(found).size, found.length)
    const missed = ids.filter(id => !found.includes(id))
    t.same(missed, [])
  }
})

t.test('a page of any budget ends behind 5,000 rows, where a millisecond ends', async t => {
  const caller = await newCaller()
  const many = Array.from({ length: 5_200 }, (_, index) => ({
    text: `row ${index}`,
    at: begin + Math.floor(index / 26),
    tokens: 1,
  }))
  await insertStoredMemories(backend, caller.scope, many, { vectors: false })
  const span = { from: '2025-03-01', to: '2025-03-01' }
  const found = await readDatePages(backend, caller, span, { maxTokens: 999_999 })
  const lengths = found.map(({ length }) => length)
  t.same(lengths, [5_018, 182])
  t.equal(new Set(found.flat().map(({ id }) => id)).size, 5_200)
})

t.test('a ranked window answers all that matches; parts of it have the same rows', async t => {
  const caller = await newCaller()
  const many = Array.from({ length: 700 }, (_, index) => ({
    text: `The ferry ${index} is late.`,
    at: begin + index * 1_000,
    tokens: 10,
  }))
  const ids = await insertStoredMemories(backend, caller.scope, many)
  const ranked = async (first: number, last: number) => {
    const span = { from: iso(begin + first * 1_000), to: iso(begin + last * 1_000) }
    const question = dateQuestion(span, { query: 'ferry', maxTokens: 200_000 })
    return searchDates(backend, caller, question)
  }
  const whole = await ranked(0, 699)
  t.match({ ...whole, rows: whole.rows.length }, { rows: 700, truncated: false, tokens: 7_000 })
  const halves = [await ranked(0, 349), await ranked(350, 699)]
  const truncated = halves.map(({ truncated }) => truncated)
  t.same(truncated, [false, false])
  t.same(halves.flatMap(({ rows }) => rows.map(({ id }) => id)).toSorted(), ids.toSorted())
})

t.test('a vault beyond the memory budget: every match once, in both orders', async t => {
  const cramped = await createTestBackend(t, {
    config: { ...backend.config, vaultIndexCacheBytes: 1 },
  })
  const caller = await newCaller()
  // Two reads of the database and more, of which one ends within a millisecond that many rows share.
  const ferries = Array.from({ length: 2_300 }, (_, index) => ({
    text: `The ferry ${index} is late.`,
    at: begin + (index < 700 ? index : index < 1_900 ? 700 : index - 1_200) * 1_000,
    tokens: 150,
  }))
  const ids = await insertStoredMemories(backend, caller.scope, ferries)
  await insertStoredMemories(
    backend,
    caller.scope,
    ferries.slice(0, 60).map(({ at }, index) => ({ text: `Bread number ${index}.`, at: at + 500 })),
  )
  const span = { from: iso(begin), to: iso(begin + 2_000_000) }
  for (const order of ['newest_first', 'oldest_first'] as const) {
    const asked = { order, query: 'ferry', maxTokens: 90_000 }
    const pages = await readDatePages(cramped, caller, span, asked)
    t.same(pages.flatMap(page => page.map(({ id }) => id)).toSorted(), ids.toSorted(), order)
    t.ok(pages.length > 2, `${pages.length} pages`)
  }
})
