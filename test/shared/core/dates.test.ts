import t from 'tap'
import { parseExclusiveEnd, parseStart } from '#shared/core/dates.ts'

t.test('a day begins at midnight UTC and counts whole; a time without a zone is UTC', async t => {
  t.equal(parseStart('2026-05-01'), Date.UTC(2026, 4, 1))
  t.equal(parseExclusiveEnd('2026-05-01'), Date.UTC(2026, 4, 2))
  t.equal(parseStart('2026-05-01T10:00:00'), Date.UTC(2026, 4, 1, 10))
  t.equal(parseStart('2026-05-01T10:00:00+02:00'), Date.UTC(2026, 4, 1, 8))
  t.equal(parseExclusiveEnd('2026-05-01T10:00:00Z'), Date.UTC(2026, 4, 1, 10) + 1)
  t.equal(parseStart('2026-05-01T10:00'), Date.UTC(2026, 4, 1, 10))
  t.equal(parseStart('2026-05-01T10:00+0200'), Date.UTC(2026, 4, 1, 8))
})
