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

t.test('a time as databases write it is right', async t => {
  const hour = (hour: number) => Date.UTC(2025, 6, 24, hour)
  const rows: [string, number][] = [
    ['2025-07-24 19:00:00+05', hour(14)],
    ['2025-07-24T19:00:00+05', hour(14)],
    ['2025-07-24 19:00:00 +0500', hour(14)],
    ['2025-07-24 19:00:00.123456-08', hour(27) + 123],
    ['2025-07-24 19:00:00 UTC', hour(19)],
    ['2025-07-24 19:00:00-00', hour(19)],
    ['2025-07-24 24:00', hour(24)],
    ['1880-01-01 00:00:00-04:56:02', Date.UTC(1880, 0, 1, 4, 56, 2)],
    ['0044-03-15T12:00:00Z', Date.parse('0044-03-15T12:00:00.000Z')],
    ['2024-02-29', Date.UTC(2024, 1, 29)],
  ]
  for (const [text, at] of rows) t.equal(parseStart(text), at, text)
})

t.test('what is no time is none, never another time', async t => {
  const texts = ['', 'now', '12', '2025', '2025-07', '07/08/2025', 'July 8, 2025', '20250708']
  const days = ['2026-02-30', '2025-02-29', '1900-02-29', '2026-04-31', '2026-13-01', '2026-00-10']
  const times = ['25:00', '24:01', '10:60', '10:00:60', '10', '10:00+24:00', '10:00+05:60']
  const zones = [
    '10:00 05',
    '10:00+5',
    '10:00EST',
    '10:00 +05Z',
    '10:00 Europe/Berlin',
    '10:00\u221205',
  ]
  for (const text of [
    ...texts,
    ...days.flatMap(day => [day, `${day}T10:00Z`, `${day} 10:00+05`]),
    ...[...times, ...zones].flatMap(time => [`2026-05-01 ${time}`, `2026-05-01T${time}`]),
  ]) {
    t.same(parseStart(text), NaN, text)
    t.same(parseExclusiveEnd(text), NaN, text)
  }
})
