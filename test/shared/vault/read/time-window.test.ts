import fc from 'fast-check'
import t from 'tap'
import {
  parseTimeWindow,
  windowStartAfter,
  windowEndBefore,
  isWithin,
} from '#shared/vault/read/time-window.ts'

const now = Date.parse('2026-05-05T05:05:05.055Z')
const id = '018f0000-0000-7000-8000-000000000001'

t.test('days count whole, moments are included, and without an end it is now', async t => {
  t.same(parseTimeWindow('2025-03-01', '2025-03-02', now), {
    from: { at: Date.parse('2025-03-01T00:00:00.000Z'), skipped: 0 },
    to: { at: Date.parse('2025-03-02T23:59:59.999Z'), last: null },
    includeOverlapping: true,
  })
  t.same(parseTimeWindow('2025-03-01T08:00:00', '2025-03-01T10:00:00+02:00', now), {
    from: { at: Date.parse('2025-03-01T08:00:00Z'), skipped: 0 },
    to: { at: Date.parse('2025-03-01T08:00:00Z'), last: null },
    includeOverlapping: true,
  })
  t.same(parseTimeWindow('2025-03-01', undefined, now).to, { at: now, last: null })
})

t.test('times finer than a millisecond are read in any number of digits', async t => {
  for (const digits of ['.0071', '.007123', '.007123456', `.007${'1'.repeat(40)}`]) {
    const text = `2025-03-01T08:00:00${digits}+01:00`
    const { from, to, includeOverlapping } = parseTimeWindow(text, text, now)
    t.equal(from.at, Date.parse('2025-03-01T07:00:00.007Z'), digits)
    t.equal(to.at, from.at, digits)
    t.ok(from.skipped >= 100_000, 'rows of that millisecond come before it')
    t.ok(to.last! >= 100_000, 'and not after it')
    t.equal(includeOverlapping, true)
  }
})

t.test('invalid: an end before the beginning', async t => {
  t.throws(() => parseTimeWindow('2025-03-02', '2025-03-01', now), /from lies after to/)
  t.throws(() => parseTimeWindow('2027-01-01', undefined, now), /from lies after to/)
})

t.test(
  'an end and a beginning read back as they were meant, and as the time of the row',
  async t => {
    const moment = fc.integer({ min: 1_700_000_000_000, max: 1_700_000_001_000 })
    const number = fc.oneof(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 99_998 }))
    fc.assert(
      fc.property(moment, number, fc.boolean(), (at, row, beyond) => {
        const end = windowEndBefore({ at, id }, row, beyond)
        const { to, includeOverlapping: open } = parseTimeWindow('2000-01-01', end, now)
        const expected =
          row === 0
            ? { at: at - 1, last: null, open: false, date: at - 1 }
            : { at, last: row - 1, open: beyond, date: at }
        t.same({ ...to, open, date: Date.parse(end) }, expected)

        const begin = windowStartAfter({ at, id }, row)
        const { from } = parseTimeWindow(begin, undefined, now)
        t.same({ ...from, date: Date.parse(begin) }, { at, skipped: row + 1, date: at })
      }),
    )
  },
)

t.test('what is left before the first row of a window is empty, and no fault', async t => {
  const at = Date.parse('2025-03-01T00:00:00Z')
  const { from, to } = parseTimeWindow('2025-03-01', windowEndBefore({ at, id }, 0, true), now)
  t.ok(from.at > to.at)
  t.notOk(
    isWithin({ from: { at: from.at }, to: { at: to.at }, includeOverlapping: false }, { at, id }),
  )
})
