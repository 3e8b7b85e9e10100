import t from 'tap'
import { isWithin, parseTimeWindow } from '#shared/vault/read/lists/time-window.ts'

const now = Date.parse('2026-05-05T05:05:05.055Z')
const id = '018f0000-0000-7000-8000-000000000001'
const at = (iso: string) => Date.parse(iso)

t.test('days count whole, moments are included, and without an end it is now', async t => {
  for (const [from, to, expected] of [
    ['2025-03-01', '2025-03-02', ['2025-03-01T00:00:00.000Z', '2025-03-02T23:59:59.999Z']],
    [
      '2025-03-01T08:00:00',
      '2025-03-01T10:00:00+02:00',
      ['2025-03-01T08:00:00.000Z', '2025-03-01T08:00:00.000Z'],
    ],
  ] as const) {
    t.match(parseTimeWindow(from, to, now), {
      from: at(expected[0]),
      to: at(expected[1]),
    })
  }
  t.match(parseTimeWindow('2025-03-01', undefined, now), { to: now })
})

t.test('a beginning finer than a millisecond is rounded up, an end down', async t => {
  for (const digits of ['.0071', '.007123', '.007123456', `.007${'1'.repeat(40)}`]) {
    const text = `2025-03-01T08:00:00${digits}+01:00`
    const { from } = parseTimeWindow(text, undefined, now)
    t.equal(from, at('2025-03-01T07:00:00.008Z'), digits)
    const { to } = parseTimeWindow('2025-03-01', text, now)
    t.equal(to, at('2025-03-01T07:00:00.007Z'), digits)
  }
  const micros = '2025-03-01T07:00:00.007000+00:00'
  t.match(parseTimeWindow(micros, micros, now), {
    from: at('2025-03-01T07:00:00.007Z'),
    to: at('2025-03-01T07:00:00.007Z'),
  })
})

t.test('invalid: an end before the beginning', async t => {
  t.throws(() => parseTimeWindow('2025-03-02', '2025-03-01', now), /from lies after to/)
})

t.test('what has not begun, or is left behind the last row of a window, is empty', async t => {
  const future = parseTimeWindow('2027-01-01', undefined, now)
  t.notOk(isWithin(future, { at: future.from, id }))
  const rest = parseTimeWindow('2025-03-01T00:00:00.001Z', '2025-03-01T00:00:00.000Z', now)
  t.notOk(isWithin(rest, { at: rest.from, id }))
  t.notOk(isWithin(rest, { at: rest.to, id }))
})
