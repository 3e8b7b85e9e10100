import fc from 'fast-check'
import t from 'tap'
import { searchDates, type DateSearchQuestion } from '#shared/vault/read/date-search.ts'
import { tiers } from '#shared/domain/memory.ts'
import { parseTimeWindow } from '#shared/vault/read/time-window.ts'
import { buildKey } from '#test/support/api.ts'
import { createTestBackend } from '#test/support/backend.ts'
import {
  insertStoredMemories,
  readVaultScope,
  type StoredMemoryFixture,
} from '#test/support/stored-memories.ts'
import type { DateSearchRow } from '#shared/vault/read/dated-row.ts'

const backend = await createTestBackend(t)
const begin = Date.parse('2025-03-01T12:00:00.000Z')
const iso = (at: number): string => new Date(at).toISOString()

const question = (
  from: string,
  to: string,
  rest: Partial<DateSearchQuestion> = {},
): DateSearchQuestion => ({
  window: parseTimeWindow(from, to, Date.now()),
  session: null,
  query: undefined,
  embeddings: undefined,
  tiers,
  importance: undefined,
  maxTokens: 1_000,
  order: 'newest_first',
  ...rest,
})

/** Follows `returned` until nothing is left out, as a client does. */
async function pages(
  scope: Awaited<ReturnType<typeof readVaultScope>>,
  span: { from: string; to: string },
  rest: Partial<DateSearchQuestion>,
): Promise<DateSearchRow[][]> {
  const all: DateSearchRow[][] = []
  let { from, to } = span
  for (;;) {
    const answer = await searchDates(
      backend,
      { scope, memberScope: null },
      question(from, to, rest),
    )
    if (answer.rows.length > 0) all.push(answer.rows)
    if (!answer.truncated) return all
    if (all.length > 200) throw new Error('no end')
    if (rest.order === 'oldest_first') from = answer.returned.to
    else to = answer.returned.from
  }
}

/** Times of a few milliseconds, so that many rows share one; tokens of which few fill a page. */
const row = fc.record({
  at: fc.integer({ min: 0, max: 9 }),
  length: fc.integer({ min: 0, max: 9 }),
  tier: fc.constantFrom(1 as const, 1 as const, 2 as const, 3 as const),
  tokens: fc.integer({ min: 1, max: 1_200 }),
})
const vaults = fc.array(row, { minLength: 5, maxLength: 25 })
const span = fc.tuple(fc.integer({ min: 0, max: 9 }), fc.integer({ min: 0, max: 9 }))

t.test(
  'pages of a window are all its rows, each once, in order, whatever shares a moment',
  async t => {
    let pagesSeen = 0
    await fc.assert(
      fc.asyncProperty(vaults, span, fc.boolean(), async (rows, ends, oldestFirst) => {
        const scope = await readVaultScope(backend, await buildKey(backend))
        const [low, high] = ends.toSorted((a, b) => a - b) as [number, number]
        const planted = rows.map(({ at, length, tier, tokens }, index): StoredMemoryFixture => ({
          text: `row ${index}`,
          at: begin + at,
          tokens,
          ...(tier > 1 && { tier, importance: 5, coversFrom: begin + at - length }),
        }))
        const ids = await insertStoredMemories(backend, scope, planted, { vectors: false })
        const expected = ids.filter((_, index) => {
          const { at, coversFrom = at } = planted[index]!
          return coversFrom <= begin + high && at >= begin + low
        })
        const order = oldestFirst ? 'oldest_first' : 'newest_first'
        const found = await pages(
          scope,
          { from: iso(begin + low), to: iso(begin + high) },
          { order },
        )
        pagesSeen += found.length
        const flat = found.flat()
        t.same(flat.map(({ id }) => id).sort(), expected.toSorted())
        const times = flat.map(({ position }) => position.at)
        t.same(
          times,
          times.toSorted((a, b) => (oldestFirst ? a - b : b - a)),
        )
        for (const page of found) {
          const end = page.at(-1)!.position.at
          const before = page.filter(({ position }) => position.at !== end)
          const tokens = before.reduce((sum, { tokens: each }) => sum + each, 0)
          t.ok(tokens <= 1_000, `${tokens} tokens before the last millisecond of a page`)
        }
        // A stored order does not depend on where pages end.
        const whole = await pages(
          scope,
          { from: iso(begin + low), to: iso(begin + high) },
          { order, maxTokens: 200_000 },
        )
        t.same(
          flat.map(({ id }) => id),
          whole.flat().map(({ id }) => id),
        )
        await backend.mongo.memories.deleteMany({ vault: scope.vault })
      }),
      { numRuns: 60 },
    )
    t.ok(pagesSeen > 120, `${pagesSeen} pages`)
  },
)

t.test('rows that come meanwhile neither repeat others nor hide them', async t => {
  for (const order of ['newest_first', 'oldest_first'] as const) {
    const scope = await readVaultScope(backend, await buildKey(backend))
    const many = Array.from({ length: 40 }, (_, index) => ({
      text: `row ${index}`,
      at: begin + Math.floor(index / 15),
      tokens: 240,
    }))
    const ids = await insertStoredMemories(backend, scope, many, { vectors: false })
    const found: string[] = []
    let [from, to] = ['2025-03-01', '2025-03-02']
    for (;;) {
      const answer = await searchDates(
        backend,
        { scope, memberScope: null },
        question(from, to, { order }),
      )
      found.push(...answer.rows.map(({ id }) => id))
      if (!answer.truncated) break
      if (order === 'oldest_first') from = answer.returned.to
      else to = answer.returned.from
      await insertStoredMemories(backend, scope, many.slice(7, 9), { vectors: false })
    }
    t.equal(new Set(found).size, found.length)
    t.same(
      ids.filter(id => !found.includes(id)),
      [],
    )
  }
})

t.test('a page of any budget ends behind 5,000 rows, where a millisecond ends', async t => {
  const scope = await readVaultScope(backend, await buildKey(backend))
  const many = Array.from({ length: 5_200 }, (_, index) => ({
    text: `row ${index}`,
    at: begin + Math.floor(index / 26),
    tokens: 1,
  }))
  await insertStoredMemories(backend, scope, many, { vectors: false })
  const found = await pages(scope, { from: '2025-03-01', to: '2025-03-01' }, { maxTokens: 999_999 })
  t.same(
    found.map(({ length }) => length),
    [5_018, 182],
  )
  t.equal(new Set(found.flat().map(({ id }) => id)).size, 5_200)
})

t.test(
  'a ranked window has no more than 500 rows in one answer; narrower ones have the rest',
  async t => {
    const scope = await readVaultScope(backend, await buildKey(backend))
    const many = Array.from({ length: 700 }, (_, index) => ({
      text: `The ferry ${index} is late.`,
      at: begin + index * 1_000,
      tokens: 10,
    }))
    const ids = await insertStoredMemories(backend, scope, many)
    const ranked = async (first: number, last: number) =>
      searchDates(
        backend,
        { scope, memberScope: null },
        question(iso(begin + first * 1_000), iso(begin + last * 1_000), {
          query: 'ferry',
          maxTokens: 200_000,
        }),
      )
    const whole = await ranked(0, 699)
    t.match({ ...whole, rows: whole.rows.length }, { rows: 500, truncated: true, tokens: 5_000 })
    const halves = [await ranked(0, 349), await ranked(350, 699)]
    t.same(
      halves.map(({ truncated }) => truncated),
      [false, false],
    )
    t.same(halves.flatMap(({ rows }) => rows.map(({ id }) => id)).toSorted(), ids.toSorted())
  },
)
