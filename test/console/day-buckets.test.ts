import { execFileSync } from 'node:child_process'
import t from 'tap'
import { formatRelativeTime } from '#api/console/app/format.ts'
import { bucketDays } from '#api/console/app/vault/day-buckets.ts'

const day = (name: string, raw = 1, reflections = 0) => ({ day: name, raw, reflections })

t.test('sixty days are days, without gaps', async t => {
  const { unit, buckets } = bucketDays([day('2026-01-30', 2, 1), day('2026-02-02')])
  t.equal(unit, 'day')
  t.same(
    buckets.map(({ from, to, raw, reflections }) => [from, to, raw, reflections]),
    [
      ['2026-01-30', '2026-01-30', 2, 1],
      ['2026-01-31', '2026-01-31', 0, 0],
      ['2026-02-01', '2026-02-01', 0, 0],
      ['2026-02-02', '2026-02-02', 1, 0],
    ],
  )
})

t.test('a year is weeks from Monday to Sunday', async t => {
  // A Sunday, the Monday behind it, and a day in December.
  const { unit, buckets } = bucketDays([day('2026-01-04'), day('2026-01-05'), day('2026-12-01')])
  t.equal(unit, 'week')
  t.match(buckets[0], { from: '2025-12-29', to: '2026-01-04', raw: 1 })
  t.match(buckets[1], { from: '2026-01-05', to: '2026-01-11', raw: 1 })
  t.match(buckets.at(-1), { from: '2026-11-30', to: '2026-12-06', raw: 1 })
})

t.test('years are months, the newest sixty', async t => {
  const { unit, buckets } = bucketDays([day('2024-01-31', 5, 2), day('2026-11-22', 3)])
  t.equal(unit, 'month')
  t.equal(buckets.length, 35)
  t.same(buckets[0], {
    from: '2024-01-01',
    to: '2024-01-31',
    label: 'January 2024',
    raw: 5,
    reflections: 2,
  })
  t.match(buckets[1], { from: '2024-02-01', to: '2024-02-29', label: 'February 2024', raw: 0 })
  t.match(buckets.at(-1), { from: '2026-11-01', to: '2026-11-30', label: 'November 2026', raw: 3 })
  t.match(buckets[11], { label: 'December 2024', to: '2024-12-31' })
  t.equal(bucketDays([day('1999-05-01'), day('2026-11-22')]).buckets.length, 60)
})

t.test('before 1970 too, and nothing for an empty vault', async t => {
  t.match(bucketDays([day('1969-12-28'), day('1970-06-01')]).buckets[0], {
    from: '1969-12-22',
    to: '1969-12-28',
    raw: 1,
  })
  t.same(bucketDays([]).buckets, [])
})

t.test('a UTC day has its own name in every time zone', async t => {
  // West of Greenwich a UTC day begins on the local day before it. Formatters keep the zone of their process.
  const program = `
    import { formatShortDay, formatUtcDay } from '#api/console/app/format.ts'
    import { bucketDays } from '#api/console/app/vault/day-buckets.ts'
    const labelsOf = (...days) =>
      bucketDays(days.map(day => ({ day, raw: 1, reflections: 0 }))).buckets.map(({ label }) => label)
    console.log(JSON.stringify([
      formatShortDay('2026-01-30'),
      formatUtcDay('2026-01-30'),
      formatUtcDay(Date.parse('2026-01-30')),
      labelsOf('2026-01-30', '2026-01-31'),
      labelsOf('2026-01-05', '2026-12-01')[0],
    ]))`
  const env = { ...process.env, TZ: 'America/Los_Angeles' }
  const printed = execFileSync(process.execPath, ['--input-type=module', '-e', program], { env })
  t.same(JSON.parse(printed.toString()), [
    '29 Jan 2026',
    '30 Jan 2026',
    '30 Jan 2026',
    ['30 Jan 2026', '31 Jan 2026'],
    'Week of 5 Jan 2026',
  ])
})

t.test('an age counts what is complete, in months below two years', t => {
  const now = Date.parse('2026-06-01T00:00:00Z')
  const ago = (days: number): string => formatRelativeTime(now - days * 86_400_000, now)
  t.same([18 * 30.5, 400, 900, 1.6, 0.99].map(ago), [
    '18 months ago',
    '13 months ago',
    '2 years ago',
    'yesterday',
    '23 hours ago',
  ])
  t.same([-2.999, -0.0001].map(ago), ['in 3 days', 'just now'])
  t.end()
})
