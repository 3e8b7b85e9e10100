import t from 'tap'
import { searchDates } from '#shared/vault/read/lists/date-search.ts'
import { buildKey } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { dateQuestion, readDatePages } from '#test/support/samples/date-pages.ts'
import { insertStoredMemories, readVaultScope } from '#test/support/checks/stored-memories.ts'

/* Of a vault beyond the memory budget a page reads 10,000 rows at most, and says how far that was. */

const backend = await createTestBackend(t)
const cramped = await createTestBackend(t, {
  config: { ...backend.config, vaultIndexCacheBytes: 1 },
})
const scope = await readVaultScope(backend, await buildKey(backend))
const caller = { scope, memberScope: null }
const begin = Date.parse('2025-03-01T12:00:00.000Z')
const iso = (at: number): string => new Date(at).toISOString()
const rows = Array.from({ length: 10_600 }, (_, index) => ({
  text: [0, 5_300, 10_599].includes(index) ? `The ferry ${index} is late.` : 'Bread and milk.',
  at: begin + index * 1_000,
  tokens: 10,
}))
const ids = await insertStoredMemories(backend, scope, rows)
const span = { from: iso(begin), to: iso(begin + 10_600_000) }

t.test('pages with few rows, and one without any, go on to the end', async t => {
  const ferries = [ids[0], ids[5_300], ids[10_599]]
  for (const [order, found] of [
    ['oldest_first', ferries],
    ['newest_first', ferries.toReversed()],
  ] as const) {
    const first = await searchDates(cramped, caller, dateQuestion(span, { order, query: 'ferry' }))
    t.match([first.truncated, first.rows.length], [true, 2], order)
    const read = order === 'oldest_first' ? 10_000 : 10_600 - 10_000
    const end = order === 'oldest_first' ? first.returned.to : first.returned.from
    t.ok(Math.abs(Date.parse(end) - begin - read * 1_000) <= 1_000, `${order}: ${end}`)
    const pages = await readDatePages(cramped, caller, span, { order, query: 'ferry' })
    t.same(
      pages
        .flat()
        .map(({ id }) => id)
        .toSorted(),
      found.toSorted(),
      order,
    )
  }
  const none = { from: span.from, to: iso(begin + 10_400_000) }
  const asked = { query: 'submarine', order: 'oldest_first' } as const
  const empty = await searchDates(cramped, caller, dateQuestion(none, asked))
  t.match(empty, { rows: [], truncated: true })
  t.same(await readDatePages(cramped, caller, none, asked), [])
})
